/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a program, for a limited time, and reads what it prints. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "util/clock.h"
#include "util/program.h"

enum { KILL_MS = 3000 };

struct reading {
	struct pollfd pipes[2];		/* stdout, stderr */
	struct ddp_text texts[2];
	size_t given;			/* of stdout, to the reader */
	doctor_reader *reader;
	void *context;
};

double doctor_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Give the reader the lines that have come whole. */
static void give_lines(struct reading *reading)
{
	char *line, *end;

	while (reading->reader && !reading->texts[0].failed &&
	       reading->texts[0].data) {
		line = reading->texts[0].data + reading->given;
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		reading->reader(reading->context, line, doctor_now());
		*end = '\n';
		reading->given = (size_t)(end + 1 - reading->texts[0].data);
	}
}

static void read_pipe(struct reading *reading, int which)
{
	char buffer[4096];
	ssize_t count = read(reading->pipes[which].fd, buffer, sizeof(buffer));

	if (count > 0) {
		ddp_text_add(&reading->texts[which], "%.*s", (int)count,
			     buffer);
		if (which == 0)
			give_lines(reading);
	} else if (count == 0 || errno != EINTR) {
		close(reading->pipes[which].fd);
		reading->pipes[which].fd = -1;
	}
}

/* Returns whether both pipes have ended by then. */
static bool read_all(struct reading *reading, int64_t deadline)
{
	int64_t left;
	int i;

	while (reading->pipes[0].fd >= 0 || reading->pipes[1].fd >= 0) {
		left = deadline - ddp_clock_ms();
		if (left <= 0)
			return false;
		if (poll(reading->pipes, 2, (int)left) <= 0)
			continue;
		for (i = 0; i < 2; i++)
			if (reading->pipes[i].fd >= 0 &&
			    reading->pipes[i].revents)
				read_pipe(reading, i);
	}
	return true;
}

static void wait_for(struct doctor_program *program, struct reading *reading,
		     pid_t pid, int timeout_ms)
{
	int status = 0;

	program->late = !read_all(reading, ddp_clock_ms() + timeout_ms);
	if (program->late) {
		kill(pid, SIGTERM);
		if (!read_all(reading, ddp_clock_ms() + KILL_MS))
			kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	program->failed = program->late || !WIFEXITED(status) ||
			  WEXITSTATUS(status) != 0;
}

void doctor_program_run(struct doctor_program *program,
			const char *const argv[], int timeout_ms,
			doctor_reader *reader, void *context)
{
	struct reading reading = { .reader = reader, .context = context };
	int out = -1, err[2], i;
	pid_t pid;

	*program = (struct doctor_program){ .failed = true };
	if (pipe2(err, O_CLOEXEC))
		return;
	pid = ddp_program_start(argv[0], argv, NULL, err[1], &out);
	close(err[1]);
	reading.pipes[0] = (struct pollfd){ .fd = out, .events = POLLIN };
	reading.pipes[1] = (struct pollfd){ .fd = err[0], .events = POLLIN };
	if (pid >= 0)
		wait_for(program, &reading, pid, timeout_ms);
	else
		ddp_text_add(&reading.texts[1], "%s: %s\n", argv[0],
			     strerror(errno));
	for (i = 0; i < 2; i++)
		if (reading.pipes[i].fd >= 0)
			close(reading.pipes[i].fd);
	program->out = ddp_text_finish(&reading.texts[0]);
	program->err = ddp_text_finish(&reading.texts[1]);
}

void doctor_program_clear(struct doctor_program *program)
{
	free(program->out);
	free(program->err);
}

/* The first line with a text in it, or NULL. */
static const char *find_line(const char *lines, const char *text)
{
	const char *at = lines ? strstr(lines, text) : NULL;

	while (at && at > lines && at[-1] != '\n')
		at--;
	return at;
}

void doctor_program_why(const struct doctor_program *program, char *text,
			size_t size)
{
	/* The cause can come after what it led to. */
	static const char *const telling[] = {
		"slurm-ddp: ", "execve()", "slurmstepd", "error: ", ""
	};
	const char *line = NULL;
	size_t i;

	for (i = 0; i < sizeof(telling) / sizeof(telling[0]) && !line; i++)
		line = find_line(program->err, telling[i]);
	if (line && *line)
		snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
	else
		snprintf(text, size, "%s", program->late ?
			 "it did not end in time" : "it says nothing");
}
