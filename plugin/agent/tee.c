/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of the tee: what it keeps, and the process it starts. */
#define _GNU_SOURCE
#include "agent/tee.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/splice.h"
#include "agent/tee_process.h"

enum {
	/* The tee reads what an ended task has left though Slurm may not take
	 * it: this is for a machine or a disk that is busy, and less than the
	 * supervisor waits for an agent that does not answer. */
	TAIL_MS = 2000,
	STACK_SIZE = 1 << 16,
	THREAD_SIZE = 1 << 20	/* what is touched of it takes memory */
};

struct stream {
	struct ddp_note note;		/* kind 0: none */
	int fds[DDP_NOTE_FDS];
};

struct ddp_tee {
	uint32_t tasks;
	struct ddp_copy_state *states;	/* shared with the process, by place */
	struct stream *streams;		/* by place */
	bool *ended;			/* tasks */
	struct ddp_tee_process *process;
	pid_t pid;			/* 0: none */
	int control;			/* -1: none */
	int handed;			/* its other end, for the process */
	int notes;			/* slurmstepd's socket */
	sem_t made;			/* there is a process, or pid is -1 */
	int patience_ms;		/* with a tail */
	bool finished;			/* no task runs */
};

static size_t states_size(uint32_t tasks)
{
	return 2 * (size_t)tasks * sizeof(struct ddp_copy_state);
}

/* Only what is touched of the states takes memory. */
struct ddp_tee *ddp_tee_create(uint32_t tasks, int notes)
{
	struct ddp_tee *tee = calloc(1, sizeof(*tee));

	if (!tee)
		return NULL;
	tee->tasks = tasks;
	tee->notes = notes;
	tee->control = -1;
	tee->patience_ms = TAIL_MS;
	tee->streams = calloc(2 * (size_t)tasks, sizeof(*tee->streams));
	tee->ended = calloc(tasks, sizeof(*tee->ended));
	tee->states = mmap(NULL, states_size(tasks), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tee->states != MAP_FAILED)
		tee->process = ddp_tee_process_create(tee->states, tasks);
	if (tee->streams && tee->ended && tee->process &&
	    sem_init(&tee->made, 0, 0) == 0)
		return tee;
	ddp_tee_process_destroy(tee->process);
	if (tee->states != MAP_FAILED)
		munmap(tee->states, states_size(tasks));
	free(tee->streams);
	free(tee->ended);
	free(tee);
	return NULL;
}

static void close_fds(const int fds[DDP_NOTE_FDS])
{
	int i;

	for (i = 0; i < DDP_NOTE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Fails only if the process has just ended; another gets it then. */
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

static int run(void *argument)
{
	const struct ddp_tee *tee = argument;

	ddp_tee_run(tee->process, tee->handed, tee->notes);
	return 0;
}

/*
 * A thread that becomes a process, which keeps its stack and all that libc has
 * for a thread, such as errno. Nobody joins it, so that libc gives these to no
 * other; and it ends without libc, which would free them. The kernel must not
 * clear its number there, by which libc's locks know who has them.
 */
static void *make_process(void *argument)
{
	alignas(max_align_t) char stack[STACK_SIZE];
	struct ddp_tee *tee = argument;

	tee->pid = clone(run, stack + STACK_SIZE, CLONE_VM | SIGCHLD, tee);
	sem_post(&tee->made);
	syscall(SYS_set_tid_address, NULL);
	syscall(SYS_exit, 0);
	return NULL;
}

/*
 * The agent's memory is slurmstepd's, and much: a fork, which copies it, would
 * take longer than all that the process does.
 */
static void start_process(struct ddp_tee *tee)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc;

	tee->pid = -1;
	if (pthread_attr_init(&attributes) != 0)
		return;
	pthread_attr_setstacksize(&attributes, THREAD_SIZE);
	rc = pthread_create(&thread, &attributes, make_process, tee);
	pthread_attr_destroy(&attributes);
	while (rc == 0 && sem_wait(&tee->made) < 0)
		;
}

/* Tell the process, if there is one, of a task's end or, by FINISH, the last's. */
static void tell(const struct ddp_tee *tee, enum ddp_note_kind kind,
		 uint32_t task)
{
	const struct ddp_note note = { .kind = kind, .task = task };

	if (tee->pid > 0)
		ddp_note_send(tee->control, &note, NULL, 0);
}

/* Start a process, and tell it all that is known. */
static void start(struct ddp_tee *tee)
{
	int ends[2];
	uint32_t i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	tee->handed = ends[1];
	start_process(tee);
	close(ends[1]);
	if (tee->pid < 0) {
		tee->pid = 0;
		close(ends[0]);
		return;
	}
	tee->control = ends[0];
	for (i = 0; i < 2 * tee->tasks; i++)
		hand_over(tee, &tee->streams[i]);
	for (i = 0; i < tee->tasks; i++)
		if (tee->ended[i])
			tell(tee, DDP_NOTE_END, i);
	if (tee->finished)
		tell(tee, DDP_NOTE_FINISH, 0);
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
	int status = 0;

	if (tee->control >= 0)
		close(tee->control);
	tee->control = -1;
	while (tee->pid > 0 && waitpid(tee->pid, &status, 0) < 0 &&
	       errno == EINTR)
		;
	tee->pid = 0;
	if (!tee->finished || WIFSIGNALED(status))
		start(tee);
}

static void read_file(int fd, char tail[DDP_WIRE_TAIL_SIZE])
{
	struct ddp_tail file = { .cut = false };
	char bytes[DDP_TAIL_SIZE];
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t got;

	file.cut = size > (off_t)sizeof(bytes);
	got = pread(fd, bytes, sizeof(bytes),
		    file.cut ? size - (off_t)sizeof(bytes) : 0);
	if (got > 0)
		ddp_tail_add(&file, bytes, (size_t)got);
	ddp_tail_get(&file, tail);
}

/* A tee that does not answer is waited for once, and not for each task. */
static void wait_for(struct ddp_tee *tee, int place)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	while (!atomic_load(&tee->states[place].drained)) {
		if (tee->pid == 0 || tee->patience_ms <= 0)
			return;
		tee->patience_ms--;
		nanosleep(&moment, NULL);
	}
	tee->patience_ms = TAIL_MS;
}

void ddp_tee_end(struct ddp_tee *tee, uint32_t task)
{
	if (!tee->ended[task])
		tell(tee, DDP_NOTE_END, task);
	tee->ended[task] = true;
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

bool ddp_tee_finish(struct ddp_tee *tee)
{
	if (!tee->finished)
		tell(tee, DDP_NOTE_FINISH, 0);
	tee->finished = true;
	return tee->pid == 0;
}
