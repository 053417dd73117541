/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libnccl.so.2: the calls that move data, which fake_nccl.c tells of.
 * Data goes through a file of the communicator: floats and ints of up to 4 MiB,
 * which are summed, between up to 8 ranks.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_nccl.h"

enum { INT32 = 2, FLOAT = 7, RANKS = 8 };

#define ROOM ((size_t)16 << 20)

struct shared {
	atomic_int came, turn;			/* a barrier */
	atomic_int full[RANKS];			/* ncclSend's: for rank N-1 */
	char data[RANKS][ROOM];
};

/* What ncclGroupEnd is to receive. */
static struct {
	struct ncclComm *comm;
	void *to;
	size_t size;
	int peer;
} pending;

/* Map the communicator's file, unless that has been done. */
static int map(struct ncclComm *comm)
{
	char path[PATH_MAX];
	void *memory;
	int file;

	if (comm->shared)
		return SUCCESS;
	fake_format_path(path, &comm->ids[0], "data");
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (file < 0 || comm->size > RANKS ||
	    ftruncate(file, sizeof(struct shared)) < 0)
		return ARGUMENT;
	memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED, file, 0);
	close(file);
	if (memory == MAP_FAILED)
		return SYSTEM;
	comm->shared = memory;
	return SUCCESS;
}

void fake_unmap(struct ncclComm *comm)
{
	if (comm->shared)
		munmap(comm->shared, sizeof(struct shared));
}

static void barrier(struct ncclComm *comm)
{
	struct shared *shared = comm->shared;
	int turn = shared->turn;

	if (++shared->came == comm->size) {
		shared->came = 0;
		shared->turn++;
	} else {
		while (shared->turn == turn)
			sched_yield();
	}
}

static void publish(struct ncclComm *comm, const void *send, size_t size)
{
	memcpy(comm->shared->data[comm->rank], send, size);
	barrier(comm);
}

static int done(struct ncclComm *comm, void *result, size_t size)
{
	const char *wrong = getenv("FAKE_NCCL_WRONG");

	barrier(comm);
	if (wrong && size > 4 && atoi(wrong) == comm->rank)
		*(char *)result ^= 1;
	comm->calls++;
	return PROGRESS;
}

static int sum(struct ncclComm *comm, void *to, size_t at, size_t count,
	       int type)
{
	for (size_t i = 0; i < count; i++) {
		float real = 0;
		int whole = 0;

		for (int rank = 0; rank < comm->size; rank++) {
			const char *from = comm->shared->data[rank];

			real += ((const float *)(const void *)from)[at + i];
			whole += ((const int *)(const void *)from)[at + i];
		}
		if (type == FLOAT)
			((float *)to)[i] = real;
		else
			((int *)to)[i] = whole;
	}
	return done(comm, to, count * 4);
}

static int usable(struct ncclComm *comm, size_t bytes, int type, int op)
{
	return bytes <= ROOM && op == 0 && (type == FLOAT || type == INT32) &&
		map(comm) == SUCCESS;
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type,
		  int op, struct ncclComm *comm, void *stream)
{
	(void)stream;
	if (!usable(comm, count * 4, type, op))
		return ARGUMENT;
	publish(comm, send, count * 4);
	return sum(comm, receive, 0, count, type);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type,
		      int op, struct ncclComm *comm, void *stream)
{
	size_t all = count * (size_t)comm->size;

	(void)stream;
	if (!usable(comm, all * 4, type, op))
		return ARGUMENT;
	publish(comm, send, all * 4);
	return sum(comm, receive, (size_t)comm->rank * count, count, type);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type,
		  struct ncclComm *comm, void *stream)
{
	size_t size = count * 4;

	(void)stream;
	if (!usable(comm, size, type, 0))
		return ARGUMENT;
	publish(comm, send, size);
	for (int rank = 0; rank < comm->size; rank++)
		memcpy((char *)receive + (size_t)rank * size,
		       comm->shared->data[rank], size);
	return done(comm, receive, size);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type,
		  int root, struct ncclComm *comm, void *stream)
{
	(void)stream;
	if (!usable(comm, count * 4, type, 0))
		return ARGUMENT;
	publish(comm, send, count * 4);
	memcpy(receive, comm->shared->data[root], count * 4);
	return done(comm, receive, count * 4);
}

int ncclSend(const void *send, size_t count, int type, int peer,
	     struct ncclComm *comm, void *stream)
{
	struct shared *shared;

	(void)stream;
	if (type != 1 || count > ROOM || map(comm) != SUCCESS)
		return ARGUMENT;
	shared = comm->shared;
	while (shared->full[comm->rank])
		sched_yield();
	memcpy(shared->data[comm->rank], send, count);
	shared->full[comm->rank] = peer + 1;
	return SUCCESS;
}

int ncclRecv(void *receive, size_t count, int type, int peer,
	     struct ncclComm *comm, void *stream)
{
	(void)stream;
	pending.comm = comm;
	pending.to = receive;
	pending.size = count;
	pending.peer = peer;
	return type == 1 ? map(comm) : ARGUMENT;
}

int fake_end_group(void)
{
	struct ncclComm *comm = pending.comm;

	if (!comm)
		return SUCCESS;
	while (comm->shared->full[pending.peer] != comm->rank + 1)
		sched_yield();
	memcpy(pending.to, comm->shared->data[pending.peer], pending.size);
	comm->shared->full[pending.peer] = 0;
	comm->calls++;
	pending.comm = NULL;
	return PROGRESS;
}
