/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that copies. It keeps nothing open but what it is handed, and
 * serves whichever stream is ready; one that Slurm does not read for now makes
 * its own task wait and no other.
 */
#define _GNU_SOURCE
#include "agent/tee_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "close_range.h"
#include "layout/clock.h"

enum {
	CONTROL = STDIN_FILENO,		/* in this process */
	FINISH_MS = 100			/* for what Slurm does not read */
};

struct ddp_tee_process {
	struct ddp_copy_state *states;
	uint32_t tasks;
	struct ddp_copy *copies;	/* by place; from < 0: none */
	struct pollfd *fds;		/* CONTROL, and theirs */
	int peek[2];
	bool agent_gone, finish;
	int64_t deadline_ms;		/* if finish */
};

int ddp_tee_place(const struct ddp_note *note, uint32_t tasks)
{
	if (note->task >= tasks || (note->stream != STDOUT_FILENO &&
				    note->stream != STDERR_FILENO))
		return -1;
	return (int)(2 * note->task + note->stream - STDOUT_FILENO);
}

static bool is_open(const struct ddp_copy *copy)
{
	return copy->state && !(copy->ended && !copy->blocked);
}

static void add(struct ddp_tee_process *process, const struct ddp_note *note,
		const int fds[DDP_NOTE_FDS])
{
	int i, place = ddp_tee_place(note, process->tasks);
	struct ddp_copy *copy;

	if (place < 0 || fds[DDP_COPY_TO] < 0)
		return;
	copy = &process->copies[place];
	copy->note = *note;
	copy->state = &process->states[place];
	for (i = 0; i < DDP_NOTE_FDS; i++)
		copy->fds[i] = fds[i];
	ddp_copy_begin(copy);
}

static void finish(struct ddp_tee_process *process)
{
	uint32_t i;

	process->finish = true;
	process->deadline_ms = ddp_clock_ms() + FINISH_MS;
	for (i = 0; i < 2 * process->tasks; i++)
		if (is_open(&process->copies[i]))
			ddp_copy_widen(&process->copies[i]);
}

static void listen(struct ddp_tee_process *process)
{
	struct ddp_note note = { 0 };
	int fds[DDP_NOTE_FDS];
	int rc = ddp_note_receive(CONTROL, &note, fds);

	if (rc > 0 && note.kind == DDP_NOTE_OUTPUT)
		add(process, &note, fds);
	else if (rc > 0 && note.kind == DDP_NOTE_FINISH)
		finish(process);
	else if (rc <= 0)
		process->agent_gone = true;
}

/* Fill in what to wait for; returns whether any stream is open. */
static bool prepare(struct ddp_tee_process *process)
{
	struct pollfd *fds = process->fds;
	bool any = false;
	uint32_t i;

	fds[0].fd = process->agent_gone ? -1 : CONTROL;
	fds[0].events = POLLIN;
	for (i = 0; i < 2 * process->tasks; i++) {
		struct ddp_copy *copy = &process->copies[i];
		struct pollfd *fd = &fds[i + 1];

		fd->fd = -1;
		if (!is_open(copy))
			continue;
		any = true;
		fd->fd = copy->fds[copy->blocked ? DDP_COPY_TO : DDP_COPY_FROM];
		fd->events = copy->blocked ? POLLOUT : POLLIN;
	}
	return any;
}

static void serve(struct ddp_tee_process *process)
{
	uint32_t i;

	for (i = 0; i < 2 * process->tasks; i++) {
		struct ddp_copy *copy = &process->copies[i];

		if (process->fds[i + 1].fd < 0 || !process->fds[i + 1].revents)
			continue;
		if (copy->ended)
			ddp_copy_flush(copy);
		else
			ddp_copy_some(copy, process->peek);
	}
}

/* When all tasks have ended, only a stream that is blocked is waited for. */
static int patience(const struct ddp_tee_process *process)
{
	int64_t left = process->deadline_ms - ddp_clock_ms();
	uint32_t i;

	if (!process->finish)
		return -1;
	for (i = 0; i < 2 * process->tasks; i++)
		if (is_open(&process->copies[i]) && process->copies[i].blocked)
			return left > 0 ? (int)left : 0;
	return 0;
}

static void work(struct ddp_tee_process *process)
{
	nfds_t count = 2 * (nfds_t)process->tasks + 1;
	int rc;

	for (;;) {
		if (!prepare(process) && process->agent_gone)
			return;
		rc = poll(process->fds, count, patience(process));
		if (process->finish &&
		    (rc == 0 || ddp_clock_ms() > process->deadline_ms))
			return;
		if (rc <= 0)
			continue;
		serve(process);
		if (process->fds[0].revents)
			listen(process);
	}
}

/* As many descriptors as the system allows: there are up to six a task. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct ddp_tee_process *ddp_tee_process_create(struct ddp_copy_state *states,
					       uint32_t tasks)
{
	struct ddp_tee_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->states = states;
	process->tasks = tasks;
	process->copies = calloc(2 * (size_t)tasks, sizeof(*process->copies));
	process->fds = calloc(2 * (size_t)tasks + 1, sizeof(*process->fds));
	if (process->copies && process->fds)
		return process;
	ddp_tee_process_destroy(process);
	return NULL;
}

void ddp_tee_process_destroy(struct ddp_tee_process *process)
{
	if (!process)
		return;
	free(process->copies);
	free(process->fds);
	free(process);
}

/* What one that was killed has left in the memory is not this one's. */
void ddp_tee_run(struct ddp_tee_process *process, int control)
{
	uint32_t i;

	prctl(PR_SET_NAME, "ddp-tee");
	dup2(control, CONTROL);
	ddp_close_from(CONTROL + 1);
	raise_limit();
	memset(process->copies, 0,
	       2 * (size_t)process->tasks * sizeof(*process->copies));
	if (pipe2(process->peek, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	work(process);
	for (i = 0; i < 2 * process->tasks; i++)
		if (is_open(&process->copies[i]))
			ddp_copy_flush(&process->copies[i]);
}
