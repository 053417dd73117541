/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of the tee: what it keeps, and the process it starts. */
#define _GNU_SOURCE
#include "agent/tee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/copy.h"
#include "agent/tee_process.h"

enum { TAIL_MS = 100, FINISH_MS = 130 };

struct stream {
	struct ddp_note note;		/* kind 0: none */
	int fds[DDP_NOTE_FDS];
};

struct ddp_tee {
	uint32_t tasks;
	struct ddp_copy_state *states;	/* shared with the process, by place */
	struct stream *streams;		/* by place */
	pid_t pid;			/* 0: none */
	int control;			/* -1: none */
	int patience_ms;		/* with a tail */
	bool finished;
};

static size_t states_size(uint32_t tasks)
{
	return 2 * (size_t)tasks * sizeof(struct ddp_copy_state);
}

/* Only what is touched of the states takes memory. */
struct ddp_tee *ddp_tee_create(uint32_t tasks)
{
	struct ddp_tee *tee = calloc(1, sizeof(*tee));

	if (!tee)
		return NULL;
	tee->tasks = tasks;
	tee->control = -1;
	tee->patience_ms = TAIL_MS;
	tee->streams = calloc(2 * (size_t)tasks, sizeof(*tee->streams));
	tee->states = mmap(NULL, states_size(tasks), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tee->streams && tee->states != MAP_FAILED)
		return tee;
	if (tee->states == MAP_FAILED)
		tee->states = NULL;
	ddp_tee_destroy(tee);
	return NULL;
}

static void close_fds(const int fds[DDP_NOTE_FDS])
{
	int i;

	for (i = 0; i < DDP_NOTE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void ddp_tee_destroy(struct ddp_tee *tee)
{
	uint32_t i;

	if (!tee)
		return;
	for (i = 0; tee->streams && i < 2 * tee->tasks; i++)
		if (tee->streams[i].note.kind)
			close_fds(tee->streams[i].fds);
	if (tee->control >= 0)
		close(tee->control);
	if (tee->states)
		munmap(tee->states, states_size(tee->tasks));
	free(tee->streams);
	free(tee);
}

/* Fails only if the process has just ended; another will be note. */
static void hand_over(const struct ddp_tee *tee, const struct stream *stream)
{
	int count = 0;

	if (stream->note.kind != DDP_NOTE_OUTPUT ||
	    stream->note.way == DDP_NOTE_FILE)
		return;
	while (count < DDP_NOTE_FDS && stream->fds[count] >= 0)
		count++;
	ddp_note_send(tee->control, &stream->note, stream->fds, count);
}

/* Start a process, and tell it all that is known. */
static void start(struct ddp_tee *tee)
{
	int ends[2];
	uint32_t i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	tee->pid = fork();
	if (tee->pid == 0)
		ddp_tee_run(ends[1], tee->states, tee->tasks);
	close(ends[1]);
	if (tee->pid < 0) {
		tee->pid = 0;
		close(ends[0]);
		return;
	}
	tee->control = ends[0];
	for (i = 0; i < 2 * tee->tasks; i++)
		hand_over(tee, &tee->streams[i]);
}

void ddp_tee_add(struct ddp_tee *tee, const struct ddp_note *note,
		 const int fds[DDP_NOTE_FDS])
{
	int place = ddp_tee_place(note, tee->tasks);
	struct stream *stream;

	if (place < 0 || fds[0] < 0 || tee->streams[place].note.kind) {
		close_fds(fds);
		return;
	}
	stream = &tee->streams[place];
	stream->note = *note;
	memcpy(stream->fds, fds, sizeof(stream->fds));
	if (tee->pid > 0)
		hand_over(tee, stream);
	else if (note->way != DDP_NOTE_FILE)
		start(tee);
}

pid_t ddp_tee_pid(const struct ddp_tee *tee)
{
	return tee->pid;
}

int ddp_tee_fd(const struct ddp_tee *tee)
{
	return tee->control;
}

void ddp_tee_revive(struct ddp_tee *tee)
{
	if (tee->control >= 0)
		close(tee->control);
	tee->control = -1;
	while (tee->pid > 0 && waitpid(tee->pid, NULL, 0) < 0 && errno == EINTR)
		;
	tee->pid = 0;
	if (!tee->finished)
		start(tee);
}

/* Whether the tail has all that the task has written. */
static bool is_seen(const struct stream *stream,
		    const struct ddp_copy_state *state)
{
	int left = 0;

	if (ioctl(stream->fds[DDP_COPY_FROM], FIONREAD, &left) < 0)
		return true;
	return (unsigned int)left <= atomic_load(&state->ahead) &&
	       !atomic_load(&state->busy);
}

static void read_file(int fd, char tail[DDP_WIRE_TAIL_SIZE])
{
	struct ddp_tail file = { .total = 0 };
	char bytes[DDP_WIRE_TAIL_SIZE];
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t got;

	if (size > (off_t)sizeof(bytes))
		file.total = (uint64_t)size - sizeof(bytes);
	got = pread(fd, bytes, sizeof(bytes), (off_t)file.total);
	if (got > 0)
		ddp_tail_add(&file, bytes, (size_t)got);
	ddp_tail_get(&file, tail);
}

/* One that Slurm does not read is waited for once, and not for each task. */
static void wait_for(struct ddp_tee *tee, int place)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	while (!is_seen(&tee->streams[place], &tee->states[place])) {
		if (tee->patience_ms <= 0)
			return;
		tee->patience_ms--;
		nanosleep(&moment, NULL);
	}
	tee->patience_ms = TAIL_MS;
}

void ddp_tee_tail(struct ddp_tee *tee, uint32_t task,
		  char tail[DDP_WIRE_TAIL_SIZE])
{
	const struct ddp_note note = { .task = task, .stream = STDERR_FILENO };
	int place = ddp_tee_place(&note, tee->tasks);

	tail[0] = '\0';
	if (place < 0 || !tee->streams[place].note.kind)
		return;
	if (tee->streams[place].note.way == DDP_NOTE_FILE) {
		read_file(tee->streams[place].fds[0], tail);
		return;
	}
	wait_for(tee, place);
	ddp_tail_get(&tee->states[place].tail, tail);
}

static uint64_t get_printed(const struct ddp_tee *tee, uint32_t place)
{
	struct stat status;

	if (!tee->streams[place].note.kind)
		return 0;
	if (tee->streams[place].note.way != DDP_NOTE_FILE)
		return tee->states[place].tail.total;
	return fstat(tee->streams[place].fds[0], &status) == 0 ?
		(uint64_t)status.st_size : 0;
}

uint64_t ddp_tee_printed(const struct ddp_tee *tee, uint32_t task)
{
	return get_printed(tee, 2 * task) + get_printed(tee, 2 * task + 1);
}

void ddp_tee_finish(struct ddp_tee *tee)
{
	const struct ddp_note note = { .kind = DDP_NOTE_FINISH };
	struct pollfd end = { .fd = tee->control, .events = 0 };

	if (tee->finished)
		return;
	tee->finished = true;
	/* slurmstepd must not find a process that has not quite ended. */
	if (tee->pid > 0 &&
	    ddp_note_send(tee->control, &note, NULL, 0) == 0 &&
	    poll(&end, 1, FINISH_MS) > 0 &&
	    waitpid(tee->pid, NULL, 0) == tee->pid)
		tee->pid = 0;
}
