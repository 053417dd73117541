/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_abort: end all ranks, with one line that says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/job_struct.h"
#include "job/thread.h"
#include "util/drain.h"
#include "util/text.h"

enum {
	WRITE_MS = 1000,	/* for a line to stderr */
	READ_MS = 1000		/* for whoever reads it */
};

/*
 * Write as much as fits of "PROGRAM: rank 3 on n2: sentence", one printable
 * line. Line ends of the caller's become spaces.
 */
__attribute__((format(printf, 4, 0))) static void
format_line(char *line, size_t room, const struct ddp_job *job,
	    const char *format, va_list args)
{
	size_t length;
	char *at;

	if (job)
		snprintf(line, room, "%.64s: rank %u on %s: ",
			 program_invocation_short_name, job->self.rank,
			 job->self.host);
	else
		snprintf(line, room, "%.64s: ",
			 program_invocation_short_name);
	length = strlen(line);
	vsnprintf(line + length, room - 1 - length, format, args);
	for (at = line; *at != '\0'; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	while (at > line && at[-1] == ' ')
		at--;
	*at = '\0';
	ddp_text_quote(line);
	strcpy(at, "\n");
}

/* Runs in a thread that blocks all signals, SIGPIPE as well. */
static void write_line(void *state)
{
	const char *line = state;
	size_t length = strlen(line), done = 0;
	ssize_t wrote;

	while (done < length) {
		wrote = write(STDERR_FILENO, line + done, length - done);
		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote == 0 || errno != EINTR)
			break;
	}
}

void ddp_abort(struct ddp_job *job, int code, const char *format, ...)
{
	char line[1024], *copy;
	va_list args;

	if (code < 1 || code > 255)
		code = 1;
	va_start(args, format);
	format_line(line, sizeof(line), job, format, args);
	va_end(args);
	copy = strdup(line);	/* for the thread, whose write may hang */
	if (!copy)
		write_line(line);
	else if (!ddp_thread_run(write_line, copy, ddp_clock_ms() + WRITE_MS))
		free(copy);
	if (job && job->client && job->process == getpid()) {
		ddp_drain_wait(STDERR_FILENO, READ_MS);
		ddp_client_abort(code, line);
	}
	_exit(code);
}
