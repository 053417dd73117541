/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of --ddp-report: a new one beside it takes its name when whole. */
#define _GNU_SOURCE
#include "supervisor/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/file.h"

/* why: NULL, if errno says it. */
static int refuse(const char *path, const char *why, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "--ddp-report=%.256s: cannot write it: %s; %s",
			     path, why ? why : strerror(errno),
			     !why && (errno == ENOSPC || errno == EDQUOT) ?
			     "make room there" :
			     "give a file in a folder of yours");
}

static bool is_output(const struct stat *file)
{
	struct stat open;
	int fd;

	for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &open) == 0 && open.st_dev == file->st_dev &&
		    open.st_ino == file->st_ino)
			return true;
	return false;
}

/*
 * The name that a new file is to take, for the caller to free: behind a link,
 * which stays, that of what it leads to. NULL if that is no regular file, or the
 * kernel does not follow the link, as of another user's in /tmp, or srun's
 * output is in it, which would be lost; why or errno says so.
 */
static char *find_target(const char *path, const char **why)
{
	struct stat status;

	*why = NULL;
	if (stat(path, &status) < 0)
		return errno == ENOENT && lstat(path, &status) < 0 ?
			strdup(path) : NULL;
	if (is_output(&status))
		*why = "srun prints there";
	else if (S_ISREG(status.st_mode))
		return realpath(path, NULL);
	else if (S_ISDIR(status.st_mode))
		errno = EISDIR;
	else
		*why = "it is not a regular file";
	return NULL;
}

/*
 * Whether a new file may take this name. In a folder such as /tmp only who owns
 * the old file may replace it, or who owns the folder. If not, errno says why.
 */
static bool is_replaceable(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) :
			       strdup(".");
	struct stat file, parent;
	bool others;

	others = folder && lstat(path, &file) == 0 &&
		 file.st_uid != geteuid() && geteuid() != 0 &&
		 stat(folder, &parent) == 0 && (parent.st_mode & S_ISVTX) &&
		 parent.st_uid != geteuid();
	free(folder);
	errno = EPERM;
	return !others;
}

int ddp_report_check(const char *path, struct ddp_error *error)
{
	const char *why;
	char *target = find_target(path, &why), *name = NULL;
	int fd = -1;

	if (target && is_replaceable(target))
		fd = ddp_file_open_beside(target, &name);
	if (fd >= 0) {
		unlink(name);
		close(fd);
	}
	free(target);
	free(name);
	return fd < 0 ? refuse(path, why, error) : 0;
}

static void format_time(time_t when, char text[32])
{
	struct tm utc;

	gmtime_r(&when, &utc);
	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

char *ddp_report_format(const struct ddp_facts *facts, time_t start,
			const char *attempts)
{
	char begun[32], ended[32];
	struct ddp_text text = { 0 };

	format_time(start, begun);
	format_time(time(NULL), ended);
	ddp_facts_add_json(&text, facts, begun, ended, attempts);
	return ddp_text_finish(&text);
}

int ddp_report_write(const char *path, const char *text,
		     struct ddp_error *error)
{
	const char *why = NULL;
	char *target = text ? find_target(path, &why) : NULL;
	int rc = target ? ddp_file_replace(target, text, strlen(text)) : -1;

	if (rc < 0)
		refuse(path, why, error);
	free(target);
	return rc;
}
