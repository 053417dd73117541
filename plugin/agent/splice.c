/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying a stream. Where bytes go to Slurm as they are, they never leave the
 * kernel: tee(2) shows them, splice(2) moves them from pipe to pipe at once, so
 * that a tee that is killed loses and repeats none.
 */
#define _GNU_SOURCE
#include "agent/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIPE_SIZE = 65536 };	/* pipe(7) */

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* No task has these descriptors: their flags are the tee's own. */
void ddp_copy_begin(struct ddp_copy *copy)
{
	set_nonblocking(copy->fds[DDP_COPY_FROM]);
	set_nonblocking(copy->fds[DDP_COPY_TO]);
}

static bool is_error(void)
{
	return errno != EAGAIN && errno != EINTR;
}

/*
 * Take into account how much was read, as of read(2). A process that has
 * outlived its task can still write: after the last task's end this reads no
 * more than a pipe holds, and Slurm ends that process then.
 */
static void count(struct ddp_copy *copy, ssize_t got)
{
	if (got > 0)
		copy->left -= (size_t)got < copy->left ? (size_t)got :
			copy->left;
	else
		copy->left = 0;
	copy->ended = got == 0 || (got < 0 && is_error()) ||
		(copy->last && copy->left == 0);
}

/* Slurm does not read this any more; the task must not notice it. */
static void drop(struct ddp_copy *copy)
{
	char bytes[4096];

	count(copy, read(copy->fds[DDP_COPY_FROM], bytes, sizeof(bytes)));
}

/* Add what is seen, and was not seen before, to the tail. */
static void see(struct ddp_copy *copy, int peek, size_t size)
{
	static char bytes[PIPE_SIZE];
	size_t ahead = atomic_load(&copy->state->ahead), length = 0;
	ssize_t got;

	while (length < size) {
		got = read(peek, bytes + length, size - length);
		if (got > 0)
			length += (size_t)got;
		else if (got == 0 || is_error())
			break;
	}
	if (length > ahead)
		ddp_tail_add(&copy->state->tail, bytes + ahead, length - ahead);
}

/* The bytes as they are. */
static void move(struct ddp_copy *copy, const int peek[2])
{
	ssize_t size = tee(copy->fds[DDP_COPY_FROM], peek[1], PIPE_SIZE,
			   SPLICE_F_NONBLOCK), moved;

	if (size <= 0) {
		count(copy, size);
		return;
	}
	see(copy, peek[0], (size_t)size);
	atomic_store(&copy->state->ahead, (unsigned int)size);
	moved = splice(copy->fds[DDP_COPY_FROM], NULL, copy->fds[DDP_COPY_TO],
		       NULL, (size_t)size, SPLICE_F_NONBLOCK);
	copy->blocked = moved < 0 && errno == EAGAIN;
	copy->gone = moved < 0 && is_error();
	if (moved > 0) {
		atomic_fetch_sub(&copy->state->ahead, (unsigned int)moved);
		count(copy, moved);
	}
}

static void copy_bytes(struct ddp_copy *copy, const int peek[2])
{
	do {
		if (copy->gone)
			drop(copy);
		else
			move(copy, peek);
	} while (copy->last && !copy->ended && !copy->blocked);
}

/* Write what is in out; false if some is left. */
static bool write_out(struct ddp_copy *copy)
{
	struct ddp_copy_state *state = copy->state;
	ssize_t put;

	while (state->out_at < state->out_length && !copy->gone) {
		put = write(copy->fds[DDP_COPY_TO], state->out + state->out_at,
			    state->out_length - state->out_at);
		copy->blocked = put < 0 && errno == EAGAIN;
		if (copy->blocked)
			return false;
		copy->gone = put < 0 && is_error();
		if (put > 0)
			state->out_at += (uint32_t)put;
	}
	state->out_at = state->out_length = 0;
	copy->blocked = false;
	return true;
}

/* The sentence goes where the stream does; out is empty. */
static void tell_log(struct ddp_copy *copy)
{
	struct ddp_copy_state *state = copy->state;
	char link[64], path[512];
	ssize_t length;

	state->log_told = true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d",
		 copy->fds[DDP_COPY_LOG]);
	length = readlink(link, path, sizeof(path));
	if (length < 0)
		length = 0;
	state->out_length = (uint32_t)snprintf(state->out, sizeof(state->out),
		"%sslurm-ddp: cannot write %.*s any more: %s; it ends here, "
		"and the output goes on\n", copy->note.label, (int)length, path,
		strerror(state->log_error));
}

static void write_log(struct ddp_copy *copy, const char *bytes, size_t size)
{
	ssize_t put;

	if (copy->fds[DDP_COPY_LOG] < 0 || copy->state->log_error)
		return;
	while (size > 0) {
		put = write(copy->fds[DDP_COPY_LOG], bytes, size);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			copy->state->log_error = errno;
			return;
		}
		bytes += put;
		size -= (size_t)put;
	}
}

/* Make whole lines of what was read; false if Slurm does not read them now. */
static bool write_lines(struct ddp_copy *copy)
{
	struct ddp_copy_state *state = copy->state;
	size_t used;

	while (write_out(copy)) {
		if (state->log_error && !state->log_told) {
			tell_log(copy);
			continue;
		}
		if (state->in_at >= state->in_length)
			return true;
		state->in_at += (uint32_t)ddp_lines_take(&state->lines,
			copy->note.label, state->in + state->in_at,
			state->in_length - state->in_at, state->out,
			sizeof(state->out), &used);
		state->out_length = (uint32_t)used;
	}
	return false;
}

/* Write all, and the line that is not whole. */
static void end_lines(struct ddp_copy *copy)
{
	struct ddp_copy_state *state = copy->state;

	if (!write_lines(copy))
		return;
	state->out_length = (uint32_t)ddp_lines_end(&state->lines, state->out);
	write_out(copy);
}

/* Returns whether something was read. */
static bool fill(struct ddp_copy *copy)
{
	struct ddp_copy_state *state = copy->state;
	char *free;
	size_t room;
	ssize_t got;

	/* If the tee is killed in between, nothing is in it either. */
	if (state->in_at >= state->in_length) {
		state->in_length = 0;
		state->in_at = 0;
	}
	free = state->in + state->in_length;
	room = sizeof(state->in) - state->in_length;
	if (room > PIPE_SIZE)
		room = PIPE_SIZE;
	if (room == 0)
		return false;
	got = read(copy->fds[DDP_COPY_FROM], free, room);
	if (got > 0) {
		ddp_tail_add(&state->tail, free, (size_t)got);
		write_log(copy, free, (size_t)got);
		if (copy->note.way == DDP_NOTE_LINES)
			state->in_length += (uint32_t)got;
	}
	count(copy, got);
	return got > 0;
}

/* A log, or whole lines, or both. */
static void copy_lines(struct ddp_copy *copy)
{
	bool taken = write_lines(copy);

	do {
		if (taken || copy->left > 0)
			while (fill(copy) && copy->left > 0)
				;
		taken = write_lines(copy);
	} while (taken && copy->left > 0);
}

void ddp_copy_some(struct ddp_copy *copy, const int peek[2])
{
	if (copy->note.way == DDP_NOTE_COPY) {
		copy_bytes(copy, peek);
		return;
	}
	if (!copy->ended)
		copy_lines(copy);
	if (copy->ended)
		end_lines(copy);
}

void ddp_copy_end(struct ddp_copy *copy, bool last)
{
	int size = fcntl(copy->fds[DDP_COPY_FROM], F_GETPIPE_SZ);

	copy->left = size > 0 ? (size_t)size : PIPE_SIZE;
	copy->last = last;
}
