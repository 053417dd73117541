/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libnccl.so.2: the calls that move data, which fake_nccl.c tells of. A
 * call, or all of a group, is a job that never waits: it goes on as far as the
 * other ranks are, and is called again. In a stream of the emulated CUDA that
 * is the stream's work (fake_stream.h); else it is done before the call
 * returns. The jobs of a communicator keep their order, whatever their streams.
 */
#include <sched.h>
#include <stdlib.h>

#include "fake_nccl.h"
#include "fake_stream.h"

enum { MOVES = 256 };

struct job {
	int count;
	struct move move[MOVES];
};

atomic_int fake_moves;

static _Thread_local struct job *group;	/* what ncclGroupEnd will start */
static _Thread_local void *group_stream;

static int run(void *argument)
{
	struct job *job = argument;
	int left, moved;

	do {
		left = moved = 0;
		for (int i = 0; i < job->count; i++) {
			struct move *move = &job->move[i];

			if (move->done)
				continue;
			move->done = fake_move(move);
			move->comm->pending -= move->done;
			if (move->comm->magic != 0)	/* not aborted */
				fake_moves -= move->done;
			moved += move->done;
			left += !move->done;
		}
	} while (left > 0 && moved > 0);
	if (left > 0)
		return 0;
	free(job);
	return 1;
}

static int start(struct job *job, void *stream)
{
	struct fake_stream *fake = fake_stream_of(stream);
	int blocking = job->move[0].comm->blocking;

	if (fake)
		fake->enqueue(stream, fake_name(job->move[0].kind), run, job);
	else
		while (!run(job))
			sched_yield();
	return blocking ? SUCCESS : PROGRESS;
}

/* What a move is to have: memory of the device, in an emulated stream. */
static int check(const struct move *move, void *stream)
{
	struct fake_stream *fake = fake_stream_of(stream);
	size_t bytes = move->count * fake_size(move->type);
	size_t all = bytes * (size_t)move->comm->size;
	int sends = move->kind != RECEIVE && (move->kind != BROADCAST ||
		move->peer == move->comm->rank);
	int receives = move->kind != SEND && (move->kind != REDUCE ||
		move->peer == move->comm->rank);

	if (fake_map(move->comm) != SUCCESS || move->peer < 0 ||
	    move->peer >= move->comm->size)
		return ARGUMENT;
	if (!fake)
		return SUCCESS;
	if (sends && fake->touch(move->send,
			move->kind == REDUCE_SCATTER ? all : bytes,
			FAKE_STREAM_LOOK, NULL) != 0)
		return ARGUMENT;
	if (receives && fake->touch(move->receive,
			move->kind == ALL_GATHER ? all : bytes,
			FAKE_STREAM_LOOK, NULL) != 0)
		return ARGUMENT;
	return SUCCESS;
}

/* Into the open group, or as a group of its own. */
static int submit(struct move move, void *stream)
{
	unsigned int *tickets = move.kind == SEND ?
		&move.comm->sends[move.peer & (RANKS - 1)] :
		move.kind == RECEIVE ?
		&move.comm->receives[move.peer & (RANKS - 1)] :
		&move.comm->collectives;

	if (move.type < 0 || move.type >= TYPES ||
	    check(&move, stream) != SUCCESS)
		return fake_fail("memory of the device, a type or a rank");
	if (!group) {
		group = calloc(1, sizeof(*group));
		group_stream = stream;
	}
	if (group->count == MOVES || group_stream != stream)
		return fake_fail("a group of many moves or streams");
	move.ticket = (*tickets)++;
	move.comm->asked[move.kind]++;
	move.comm->pending++;
	fake_moves++;
	move.comm->stream = stream;
	move.stream = fake_stream_of(stream);
	group->move[group->count++] = move;
	if (fake_depth() > 0)
		return SUCCESS;
	move.comm->calls += !move.comm->blocking;
	return fake_end_group();
}

int fake_end_group(void)
{
	struct job *job = group;

	if (!job)
		return SUCCESS;
	group = NULL;
	fake_list(job->move[0].comm);
	return start(job, group_stream);
}

static int can_sum(int type, int op)
{
	return op == 0 && (type == FP32 || type == BF16 || type == FP16 ||
			   type == INT32);
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type,
		  int op, struct ncclComm *comm, void *stream)
{
	if (!can_sum(type, op))
		return fake_fail("a sum that the fake lacks");
	return submit((struct move){ .kind = ALL_REDUCE, .comm = comm,
		      .send = send, .receive = receive, .count = count,
		      .type = type }, stream);
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type,
		      int op, struct ncclComm *comm, void *stream)
{
	if (!can_sum(type, op))
		return fake_fail("a sum that the fake lacks");
	return submit((struct move){ .kind = REDUCE_SCATTER, .comm = comm,
		      .send = send, .receive = receive, .count = count,
		      .type = type }, stream);
}

int ncclReduce(const void *send, void *receive, size_t count, int type, int op,
	       int root, struct ncclComm *comm, void *stream)
{
	if (!can_sum(type, op))
		return fake_fail("a sum that the fake lacks");
	return submit((struct move){ .kind = REDUCE, .comm = comm,
		      .send = send, .receive = receive, .count = count,
		      .type = type, .peer = root }, stream);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type,
		  struct ncclComm *comm, void *stream)
{
	return submit((struct move){ .kind = ALL_GATHER, .comm = comm,
		      .send = send, .receive = receive, .count = count,
		      .type = type }, stream);
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type,
		  int root, struct ncclComm *comm, void *stream)
{
	return submit((struct move){ .kind = BROADCAST, .comm = comm,
		      .send = send, .receive = receive, .count = count,
		      .type = type, .peer = root }, stream);
}

int ncclSend(const void *send, size_t count, int type, int peer,
	     struct ncclComm *comm, void *stream)
{
	return submit((struct move){ .kind = SEND, .comm = comm, .send = send,
		      .count = count, .type = type, .peer = peer }, stream);
}

int ncclRecv(void *receive, size_t count, int type, int peer,
	     struct ncclComm *comm, void *stream)
{
	return submit((struct move){ .kind = RECEIVE, .comm = comm,
		      .receive = receive, .count = count, .type = type,
		      .peer = peer }, stream);
}
