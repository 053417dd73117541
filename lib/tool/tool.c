/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's standard streams, and the files that it writes: none blocks, and
 * none is left half written.
 */
#define _GNU_SOURCE
#include "tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/file.h"
#include "util/text.h"

void tool_start(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	signal(SIGXFSZ, SIG_IGN);
}

int tool_flush(struct ddp_error *error)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot write the "
			     "standard output: %s; send it elsewhere",
			     errno ? strerror(errno) : "a write failed");
}

bool tool_has_colour(FILE *file)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (!no || *no == '\0') && term && strcmp(term, "dumb") != 0 &&
	       isatty(fileno(file)) == 1;
}

void tool_print_json(FILE *file, const char *string)
{
	struct ddp_text text = { 0 };
	char *json;

	ddp_text_add_json(&text, string);
	json = ddp_text_finish(&text);
	fputs(json ? json : "null", file);
	free(json);
}

void tool_print_error(const char *program, const struct ddp_error *error)
{
	fprintf(stderr, "%s: %s\n", program, error->text);
}

int tool_print_text(char *text, struct ddp_error *error)
{
	if (!text)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for the output");
	fputs(text, stdout);
	free(text);
	return 0;
}

/* ---- PyTorch's error file: see util/failure.h */

void tool_record_failure(const char *message)
{
	const char *path = getenv("TORCHELASTIC_ERROR_FILE");
	struct ddp_text text = { 0 };
	char *all;
	int fd;

	if (!path || !*path)
		return;
	ddp_text_add(&text, "{\"message\": ");
	ddp_text_add_json(&text, message);
	ddp_text_add(&text, ", \"timestamp\": %lld}\n",
		     (long long)time(NULL));
	all = ddp_text_finish(&text);
	fd = all ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
			O_NONBLOCK | O_CLOEXEC, 0600) : -1;
	if (fd >= 0) {
		dprintf(fd, "%s", all);
		close(fd);
	}
	free(all);
}

/* ---- files */

/* Returns true if this name would fail another time as well. */
static bool is_wrong_name(int why)
{
	switch (why) {
	case EACCES: case EISDIR: case ELOOP: case ENAMETOOLONG: case ENOENT:
	case ENOTDIR: case EPERM: case EROFS:
		return true;
	default:
		return false;
	}
}

static int fail(const char *option, const char *path, struct ddp_error *error)
{
	bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;

	return ddp_error_set(error, is_wrong_name(errno) ? DDP_ERROR_ARGUMENT :
			     DDP_ERROR_SYSTEM, "cannot write %s %s: "
			     "%s; %s", option, path, strerror(errno), full ?
			     "make room there or name another file" :
			     "name a file that you may write");
}

int tool_replace_file(const char *option, const char *path, const char *text,
		      size_t length, struct ddp_error *error)
{
	struct stat status;
	bool is_there = stat(path, &status) == 0;
	char *target;
	int rc;

	if (!is_there && (errno != ENOENT || lstat(path, &status) == 0))
		return fail(option, path, error);
	if (is_there && !S_ISREG(status.st_mode))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is not "
				     "a regular file; name one, or one to be "
				     "made", option, path);
	/* A link stays: what it leads to is replaced. */
	target = is_there ? realpath(path, NULL) : strdup(path);
	rc = !target || (is_there && access(target, W_OK)) ||
	     ddp_file_replace(target, text, length) ?
		fail(option, path, error) : 0;
	free(target);
	return rc;
}

/* The open file's descriptor, from now on one whose writes wait. */
static int open_log(const char *option, const char *path,
		    struct ddp_error *error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
		      O_NOCTTY | O_NONBLOCK, 0666);
	struct stat status;

	if (fd < 0 && errno == ENXIO)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s %s is a "
				     "pipe that nobody reads, or a socket; "
				     "start its reader first, or name a file",
				     option, path);
	if (fd < 0)
		return fail(option, path, error);
	if (fstat(fd, &status) || fcntl(fd, F_SETFL, O_APPEND)) {
		fail(option, path, error);
	} else if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) &&
		   !S_ISCHR(status.st_mode)) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s %s is not a "
			      "file, a pipe or a terminal; name one of them",
			      option, path);
	} else {
		return fd;
	}
	close(fd);
	return -1;
}

FILE *tool_open_log(const char *option, const char *path,
		    struct ddp_error *error)
{
	int fd = open_log(option, path, error);
	FILE *file = fd >= 0 ? fdopen(fd, "a") : NULL;

	if (fd >= 0 && !file) {
		fail(option, path, error);
		close(fd);
	}
	return file;
}
