/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of --ddp-logs: DIR/JOB.STEP/rank-000012.out. The folder of the step
 * and what is in it must be the user's own, and no link: DIR may be one in
 * which everybody can write.
 */
#define _GNU_SOURCE
#include "stepd/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options/plugin.h"

static int fail(const char *path, const char *why, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--ddp-logs: cannot write "
			     "%.512s: %s; give a folder that you can write to "
			     "on every node", path, why);
}

/* Returns true if a path names a link that another user has made, not root. */
static bool is_others_link(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISLNK(status.st_mode) &&
	       status.st_uid != geteuid() && status.st_uid != 0;
}

/* DIR itself; a link of the user's own is followed. */
static int open_top(const char *path, struct ddp_error *error)
{
	int fd;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return fail(path, strerror(errno), error);
	if (is_others_link(path))
		return fail(path, "it is another user's link", error);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail(path, strerror(errno), error) : fd;
}

/* Returns fd; -1, and closes it, if it is not the user's or of another type. */
static int check(int fd, mode_t type, const char *path, struct ddp_error *error)
{
	struct stat status;
	const char *why = NULL;

	if (fd < 0)
		why = errno == ELOOP ? "it is a link" : strerror(errno);
	else if (fstat(fd, &status) < 0)
		why = strerror(errno);
	else if (status.st_uid != geteuid())
		why = "it is another user's";
	else if ((status.st_mode & S_IFMT) != type)
		why = "something else has this name";
	if (why && fd >= 0)
		close(fd);
	return why ? fail(path, why, error) : fd;
}

/* A job that is requeued has the same number, and counts its steps anew. */
static void name_step(const struct ddp_task *task, char *name, size_t size)
{
	const char *again = ddp_task_users(task, "SLURM_RESTART_COUNT");

	if (again && strcmp(again, "0") != 0)
		snprintf(name, size, "%u.%u.%.10s", task->job_id,
			 task->step_id, again);
	else
		snprintf(name, size, "%u.%u", task->job_id, task->step_id);
}

/* DIR without slashes at its end. Returns its length. */
static size_t name_top(char path[PATH_MAX])
{
	size_t length = strlen(ddp_plugin.logs);

	while (length > 1 && ddp_plugin.logs[length - 1] == '/')
		length--;
	snprintf(path, PATH_MAX, "%.*s", (int)length, ddp_plugin.logs);
	return length;
}

/*
 * The folder of the step in DIR, made if it is missing. path[PATH_MAX] is then
 * its path. Returns a descriptor, or -1.
 */
static int open_step(const struct ddp_task *task, char *path,
		     struct ddp_error *error)
{
	size_t length = name_top(path);
	int top = open_top(path, error), step;

	if (top < 0)
		return -1;
	path[length++] = '/';
	name_step(task, path + length, PATH_MAX - length);
	if (mkdirat(top, path + length, 0777) < 0 && errno != EEXIST)
		step = fail(path, strerror(errno), error);
	else
		step = check(openat(top, path + length, O_RDONLY | O_NOFOLLOW |
				    O_NONBLOCK | O_CLOEXEC), S_IFDIR, path,
			     error);
	close(top);
	return step;
}

int ddp_logs_open(const struct ddp_task *task, const char *stream,
		  struct ddp_error *error)
{
	char path[PATH_MAX], *name;
	int step = open_step(task, path, error), fd;

	if (step < 0)
		return -1;
	name = path + strlen(path);
	*name++ = '/';
	snprintf(name, PATH_MAX - (size_t)(name - path), "rank-%06u.%s",
		 task->rank, stream);
	fd = check(openat(step, name, O_WRONLY | O_CREAT | O_APPEND |
			  O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666),
		   S_IFREG, path, error);
	close(step);
	return fd;
}

int ddp_logs_check(struct ddp_error *error)
{
	char path[PATH_MAX], folder[PATH_MAX + 2];
	size_t length = name_top(path);

	if (is_others_link(path))
		return fail(path, "it is another user's link", error);
	snprintf(folder, sizeof(folder), "%s/.", path);
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	if (errno == ENOENT) {
		/* It is missing: then it is made, in the folder around it. */
		while (length > 0 && path[length - 1] != '/')
			length--;
		snprintf(folder, sizeof(folder), "%.*s.", (int)length, path);
		if (access(folder, W_OK | X_OK) == 0)
			return 0;
	}
	return fail(path, strerror(errno), error);
}
