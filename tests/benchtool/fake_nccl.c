/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libnccl.so.2 that does move data, for tests on machines without a
 * GPU: between the ranks of one machine, through a file below $FAKE_NCCL_DIR,
 * of floats and ints up to 4 MiB, which are summed. Its calls return
 * ncclInProgress, as those of a communicator that does not block can. On rank
 * $FAKE_NCCL_WRONG every result's first byte is spoilt.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SUCCESS, ARGUMENT = 4, PROGRESS = 7, INT32 = 2, FLOAT = 7, RANKS = 8 };

#define ROOM ((size_t)4 << 20)

typedef struct {
	char internal[128];
} ncclUniqueId;

struct shared {
	atomic_int came, turn;			/* a barrier */
	atomic_int full[RANKS];			/* ncclSend's */
	char data[RANKS][ROOM];
};

struct ncclComm {
	int size, rank, calls;
	struct shared *shared;
};

/* What ncclGroupEnd is to receive. */
static struct {
	struct ncclComm *comm;
	void *to;
	size_t size;
	int peer;
} pending;

int ncclGetVersion(int *version)
{
	*version = 22809;
	return SUCCESS;
}

int ncclGetUniqueId(ncclUniqueId *id)
{
	static int made;

	memset(id, 0, sizeof(*id));
	snprintf(id->internal, sizeof(id->internal), "fake-%d-%d",
		 (int)getpid(), made++);
	return SUCCESS;
}

static int init(struct ncclComm **made, int size, const ncclUniqueId *id,
		int rank)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));
	char path[300];
	int file;

	snprintf(path, sizeof(path), "%s/%.120s", getenv("FAKE_NCCL_DIR"),
		 id->internal);
	file = open(path, O_RDWR | O_CREAT, 0666);
	if (file < 0 || size > RANKS ||
	    ftruncate(file, sizeof(struct shared)) < 0)
		return ARGUMENT;
	comm->size = size;
	comm->rank = rank;
	comm->shared = mmap(NULL, sizeof(struct shared),
			    PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	*made = comm;
	return PROGRESS;
}

int ncclCommInitRankConfig(struct ncclComm **comm, int size, ncclUniqueId id,
			   int rank, void *config)
{
	(void)config;
	return init(comm, size, &id, rank);
}

int ncclCommInitRankScalable(struct ncclComm **comm, int size, int rank,
			     int count, ncclUniqueId *ids, void *config)
{
	(void)count;
	(void)config;
	return init(comm, size, ids, rank);
}

/* Each call is in progress once. */
int ncclCommGetAsyncError(struct ncclComm *comm, int *result)
{
	*result = comm->calls > 0 ? PROGRESS : SUCCESS;
	comm->calls = 0;
	return SUCCESS;
}

static int end(struct ncclComm *comm)
{
	munmap(comm->shared, sizeof(struct shared));
	free(comm);
	return SUCCESS;
}

int ncclCommFinalize(struct ncclComm *comm)
{
	(void)comm;
	return SUCCESS;
}

int ncclCommDestroy(struct ncclComm *comm)
{
	return end(comm);
}

int ncclCommAbort(struct ncclComm *comm)
{
	return end(comm);
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

static int usable(size_t bytes, int type, int op)
{
	return bytes <= ROOM && op == 0 && (type == FLOAT || type == INT32);
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type,
		  int op, struct ncclComm *comm, void *stream)
{
	(void)stream;
	if (!usable(count * 4, type, op))
		return ARGUMENT;
	publish(comm, send, count * 4);
	return sum(comm, receive, 0, count, type);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type,
		      int op, struct ncclComm *comm, void *stream)
{
	size_t all = count * (size_t)comm->size;

	(void)stream;
	if (!usable(all * 4, type, op))
		return ARGUMENT;
	publish(comm, send, all * 4);
	return sum(comm, receive, (size_t)comm->rank * count, count, type);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type,
		  struct ncclComm *comm, void *stream)
{
	size_t size = count * 4;

	(void)stream;
	if (!usable(size, type, 0))
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
	if (!usable(count * 4, type, 0))
		return ARGUMENT;
	publish(comm, send, count * 4);
	memcpy(receive, comm->shared->data[root], count * 4);
	return done(comm, receive, count * 4);
}

int ncclSend(const void *send, size_t count, int type, int peer,
	     struct ncclComm *comm, void *stream)
{
	struct shared *shared = comm->shared;

	(void)stream;
	(void)peer;
	if (type != 1 || count > ROOM)
		return ARGUMENT;
	while (shared->full[comm->rank])
		sched_yield();
	memcpy(shared->data[comm->rank], send, count);
	shared->full[comm->rank] = 1;
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
	return type == 1 ? SUCCESS : ARGUMENT;
}

int ncclGroupStart(void)
{
	return SUCCESS;
}

int ncclGroupEnd(void)
{
	struct ncclComm *comm = pending.comm;

	if (!comm)
		return SUCCESS;
	while (!comm->shared->full[pending.peer])
		sched_yield();
	memcpy(pending.to, comm->shared->data[pending.peer], pending.size);
	comm->shared->full[pending.peer] = 0;
	comm->calls++;
	pending.comm = NULL;
	return PROGRESS;
}

const char *ncclGetErrorString(int result)
{
	return result == ARGUMENT ? "invalid argument" : "fake error";
}

const char *ncclGetLastError(struct ncclComm *comm)
{
	(void)comm;
	return "";
}
