/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that copies. It keeps nothing open but what it is handed, and
 * serves whichever stream is ready; one that Slurm does not read for now makes
 * its own task wait and no other.
 */
#define _GNU_SOURCE
#include "agent/tee_process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/file.h"

/* The process has these numbers in the list that it polls, too. */
enum { CONTROL, NOTES, STREAMS };

struct ddp_tee_process {
	struct ddp_copy_state *states;
	uint32_t tasks;
	struct ddp_copy *copies;	/* by place; from < 0: none */
	struct pollfd *fds;		/* CONTROL, NOTES, and theirs */
	int peek[2];
	bool agent_gone, finish;
	bool slurmstepd_gone;		/* or it gives up what is left */
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
	return copy->state && (!copy->ended || copy->blocked);
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

static void end(struct ddp_tee_process *process, uint32_t place, bool last)
{
	struct ddp_copy *copy = &process->copies[place];

	if (!copy->state)
		return;
	ddp_copy_end(copy, last);
	ddp_copy_some(copy, process->peek);
	atomic_store(&copy->state->drained, true);
}

static void finish(struct ddp_tee_process *process)
{
	uint32_t i;

	process->finish = true;
	for (i = 0; i < 2 * process->tasks; i++)
		end(process, i, true);
}

static void obey(struct ddp_tee_process *process)
{
	struct ddp_note note = { 0 };
	int fds[DDP_NOTE_FDS];
	int rc = ddp_note_receive(CONTROL, &note, fds);

	if (rc <= 0) {
		process->agent_gone = true;
	} else if (note.kind == DDP_NOTE_OUTPUT) {
		add(process, &note, fds);
	} else if (note.kind == DDP_NOTE_FINISH) {
		finish(process);
	} else if (note.kind == DDP_NOTE_END && note.task < process->tasks) {
		end(process, 2 * note.task, false);
		end(process, 2 * note.task + 1, false);
	}
}

/* Fill in what to wait for; returns whether any stream is open. */
static bool prepare(struct ddp_tee_process *process)
{
	struct pollfd *fds = process->fds;
	bool any = false;
	uint32_t i;

	fds[CONTROL].fd = process->agent_gone ? -1 : CONTROL;
	fds[CONTROL].events = POLLIN;
	fds[NOTES].fd = process->slurmstepd_gone ? -1 : NOTES;
	fds[NOTES].events = process->agent_gone && !process->finish ?
		POLLRDHUP : 0;
	for (i = 0; i < 2 * process->tasks; i++) {
		struct ddp_copy *copy = &process->copies[i];
		struct pollfd *fd = &fds[STREAMS + i];

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
	bool any = false;
	uint32_t i;

	for (i = 0; i < 2 * process->tasks; i++) {
		if (process->fds[STREAMS + i].fd < 0 ||
		    !process->fds[STREAMS + i].revents)
			continue;
		ddp_copy_some(&process->copies[i], process->peek);
		any = true;
	}
	if (any && process->finish)
		send(NOTES, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Runs until nothing is left to copy: when the last task has ended, a stream stays
 * open only while it waits for Slurm. */
static void work(struct ddp_tee_process *process)
{
	const nfds_t count = STREAMS + 2 * (nfds_t)process->tasks;
	const struct pollfd *fds = process->fds;

	while (prepare(process) || !(process->finish || process->agent_gone)) {
		if (poll(process->fds, count, -1) <= 0)
			continue;
		serve(process);
		if (fds[CONTROL].revents)
			obey(process);
		if (fds[NOTES].revents & POLLHUP)
			process->slurmstepd_gone = true;
		else if (fds[NOTES].revents)
			finish(process);
		if (process->slurmstepd_gone && process->finish)
			return;
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
	process->fds = calloc(STREAMS + 2 * (size_t)tasks,
			      sizeof(*process->fds));
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
void ddp_tee_run(struct ddp_tee_process *process, int control, int notes)
{
	prctl(PR_SET_NAME, "ddp-tee");
	dup2(notes, NOTES);
	dup2(control, CONTROL);
	ddp_close_from(STREAMS);
	raise_limit();
	process->agent_gone = process->finish = false;
	process->slurmstepd_gone = false;
	memset(process->copies, 0,
	       2 * (size_t)process->tasks * sizeof(*process->copies));
	if (pipe2(process->peek, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	work(process);
}
