/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a task's standard output and error come to the tee: a new pipe takes the
 * place of Slurm's, or a new terminal that of a terminal, so that the program
 * finds what it would have found. The agent gets the other end, and Slurm's, and
 * the file of --ddp-logs.
 */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "layout/tasks.h"
#include "options/plugin.h"
#include "stepd/stepd.h"

/* ---- the files of --ddp-logs */

/*
 * DIR/JOB.STEP/rank-000012.out: the folder of the step and what is in it must be
 * the user's own, and no link: DIR may be one in which everybody can write.
 */
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

/*
 * Opens the file of a task's stream, "out" or "err", to append to it, and makes
 * its folder where that is missing. Returns a descriptor, or -1.
 */
static int open_log(const struct ddp_task *task, const char *stream,
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

/* ---- the streams */

enum { FDS_A_TASK = 7, FDS_OTHER = 64 };

enum kind { PIPE, TERMINAL, NOTHING, PLAIN_FILE, OTHER };

static const char *const stream_names[] = { "stdin", "stdout", "stderr" };

static enum kind find_kind(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return OTHER;
	if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
		return PIPE;
	if (S_ISREG(status.st_mode))
		return PLAIN_FILE;
	if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3))
		return NOTHING;
	return isatty(fd) ? TERMINAL : OTHER;
}

/* A terminal with the settings of another; fds as of pipe2. */
static int open_terminal(int like, int fds[2])
{
	struct termios settings;
	char name[64];

	fds[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fds[0] < 0)
		return -1;
	fds[1] = -1;
	if (unlockpt(fds[0]) == 0 &&
	    ptsname_r(fds[0], name, sizeof(name)) == 0)
		fds[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fds[1] >= 0 && tcgetattr(like, &settings) == 0 &&
	    tcsetattr(fds[1], TCSANOW, &settings) == 0)
		return 0;
	if (fds[1] >= 0)
		close(fds[1]);
	close(fds[0]);
	return -1;
}

/* log < 0: none. Only what is sent is diverted. Returns 0, or -1 with errno. */
static int hand_over(struct ddp_note *note, enum kind kind, int log)
{
	int stream = (int)note->stream, ends[2], fds[DDP_NOTE_FDS], rc;

	rc = kind == TERMINAL ? open_terminal(stream, ends) :
		pipe2(ends, O_CLOEXEC);
	if (rc < 0)
		return -1;
	fds[0] = ends[0];
	fds[1] = stream;
	fds[2] = log;
	rc = ddp_note_send(ddp_stepd.notes[1], note, fds, log < 0 ? 2 : 3);
	if (rc == 0)
		rc = dup2(ends[1], stream) < 0 ? -1 : 0;
	close(ends[0]);
	close(ends[1]);
	return rc;
}

/*
 * A file of --error=FILE: the agent reads its end. It is opened by its
 * descriptor: the name may lead elsewhere by now.
 */
static void show_file(struct ddp_note *note)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%u", note->stream);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	note->way = DDP_NOTE_FILE;
	ddp_note_send(ddp_stepd.notes[1], note, &fd, 1);
	close(fd);
}

/* Let the agent see what is printed, where that changes nothing. */
static void show(const struct ddp_task *task, int stream)
{
	struct ddp_note note = {
		.kind = DDP_NOTE_OUTPUT, .task = task->local_rank,
		.stream = (uint32_t)stream, .way = DDP_NOTE_COPY,
	};
	enum kind kind = find_kind(stream);

	if (kind == PIPE)
		hand_over(&note, kind, -1);
	else if (kind == PLAIN_FILE)
		show_file(&note);
}

/* Returns true if the tee may have as many files open as it needs. */
static bool has_room(const struct ddp_task *task)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       limit.rlim_max >= FDS_A_TASK * (rlim_t)task->local_count +
				 FDS_OTHER;
}

static int refuse_file(int stream, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s: %s goes to a file on this node already; "
			     "leave out --output and --error",
			     ddp_plugin.logs ? "--ddp-logs" : "--ddp-show",
			     stream_names[stream]);
}

/* Returns true if srun prints what comes from this stream. */
static bool is_shown(const struct ddp_task *task, enum kind kind)
{
	return kind != NOTHING &&
	       (!ddp_plugin.show || ddp_ranks_has(ddp_plugin.show, task->rank));
}

/*
 * Returns whether a program reads the output, as in $(srun -n1 hostname): the
 * options that want labels may be the job's.
 */
static bool is_read(const struct ddp_task *task, int stream)
{
	return task->world_size == 1 && stream == STDOUT_FILENO && task->piped;
}

/* --ddp-logs or --ddp-show. */
static int divert_lines(const struct ddp_task *task, int stream,
			struct ddp_error *error)
{
	enum kind kind = find_kind(stream);
	struct ddp_note note = {
		.kind = DDP_NOTE_OUTPUT, .task = task->local_rank,
		.stream = (uint32_t)stream,
		.way = is_shown(task, kind) ? DDP_NOTE_LINES : DDP_NOTE_DROP,
	};
	int log = -1, rc;

	if (kind == PLAIN_FILE || kind == OTHER)
		return refuse_file(stream, error);
	if (!is_read(task, stream))
		snprintf(note.label, sizeof(note.label), "[%u %.255s] ",
			 task->rank, task->vars.rank.host);
	if (ddp_plugin.logs) {
		log = open_log(task, stream_names[stream] + strlen("std"),
			       error);
		if (log < 0)
			return -1;
	}
	rc = hand_over(&note, kind, log);
	if (rc < 0)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "%s of the task cannot "
			      "be diverted: %s", stream_names[stream],
			      strerror(errno));
	if (log >= 0)
		close(log);
	return rc;
}

static int refuse_lines(const struct ddp_task *task, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--ddp-logs and "
			     "--ddp-show: nothing can copy the output here; "
			     "they need a limit of %u open files (ulimit -Hn)",
			     FDS_A_TASK * task->local_count + FDS_OTHER);
}

int ddp_divert_output(const struct ddp_task *task, struct ddp_error *error)
{
	bool agent = ddp_stepd.siblings && has_room(task) &&
		atomic_load(&ddp_stepd.siblings->agent) > 0;

	if (ddp_plugin.logs || ddp_plugin.show) {
		if (!agent)
			return refuse_lines(task, error);
		return divert_lines(task, STDOUT_FILENO, error) < 0 ? -1 :
			divert_lines(task, STDERR_FILENO, error);
	}
	if (agent && task->supervised)
		show(task, STDERR_FILENO);
	if (agent && task->supervised && ddp_plugin.watchdog_s)
		show(task, STDOUT_FILENO);
	return 0;
}
