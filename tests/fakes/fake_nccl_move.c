/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libnccl.so.2: how data moves between up to 8 ranks of one machine,
 * through a file of the communicator. A collective goes by pieces: each rank
 * publishes its own where all others have read the last one. What one rank
 * sends another goes by chunks. Sums are in fp32, by rank upwards, and rounded
 * once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_nccl.h"
#include "fake_stream.h"
#include "half_bits.h"

/*
 * Bytes that are handed over at once: many, as each time other processes may
 * come between, which ddp-bench would take for a slow link.
 */
#ifndef FAKE_ROOM
#define FAKE_ROOM (8 << 20)
#endif
enum { ROOM = FAKE_ROOM, CHANNEL_ROOM = FAKE_ROOM };

/* What a rank's part of the file is for: the number of the piece of data. */
struct shared {
	atomic_uint published[RANKS], finished[RANKS];
	uint64_t what[RANKS];		/* the published piece is of */
	struct {
		atomic_uint sent, taken;	/* chunks */
		size_t bytes;
		char data[CHANNEL_ROOM];
	} channel[RANKS][RANKS];	/* from, to */
	char data[RANKS][ROOM];
};

static const size_t sizes[TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
static const char *const names[] = { "ncclAllReduce", "ncclReduceScatter",
	"ncclAllGather", "ncclBroadcast", "ncclReduce", "ncclSend",
	"ncclRecv" };

size_t fake_size(int type) { return sizes[type]; }
const char *fake_name(enum kind kind) { return names[kind]; }

int fake_map(struct ncclComm *comm)
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

static void touch(const struct move *move, const void *p,
		  size_t bytes, int how)
{
	if (move->stream)
		move->stream->touch(p, bytes, how, names[move->kind]);
}

/* ---- one rank to another: chunks through a channel of one place */

static int send_on(struct move *move)
{
	struct ncclComm *comm = move->comm;
	size_t size = sizes[move->type], bytes = move->count * size;
	const char *from = move->send;
	size_t chunk;

	if (comm->sent[move->peer] != move->ticket)
		return 0;
	for (size_t at = move->at * size; at < bytes; at += chunk) {
		chunk = bytes - at < CHANNEL_ROOM ? bytes - at : CHANNEL_ROOM;
		if (comm->shared->channel[comm->rank][move->peer].sent !=
		    comm->shared->channel[comm->rank][move->peer].taken)
			return 0;
		touch(move, from + at, chunk, FAKE_STREAM_READ);
		memcpy(comm->shared->channel[comm->rank][move->peer].data,
		       from + at, chunk);
		comm->shared->channel[comm->rank][move->peer].bytes = chunk;
		comm->shared->channel[comm->rank][move->peer].sent++;
		move->at += chunk / size;
	}
	comm->sent[move->peer]++;
	return 1;
}

static int receive_on(struct move *move)
{
	struct ncclComm *comm = move->comm;
	size_t size = sizes[move->type], bytes = move->count * size;
	char *to = move->receive;
	size_t chunk;

	if (comm->received[move->peer] != move->ticket)
		return 0;
	for (size_t at = move->at * size; at < bytes; at += chunk) {
		chunk = bytes - at < CHANNEL_ROOM ? bytes - at : CHANNEL_ROOM;
		if (comm->shared->channel[move->peer][comm->rank].sent ==
		    comm->shared->channel[move->peer][comm->rank].taken)
			return 0;
		if (comm->shared->channel[move->peer][comm->rank].bytes !=
		    chunk)
			fake_differ(comm, "ncclSend and ncclRecv of other "
				    "sizes");
		touch(move, to + at, chunk, FAKE_STREAM_WRITE);
		memcpy(to + at,
		       comm->shared->channel[move->peer][comm->rank].data,
		       chunk);
		comm->shared->channel[move->peer][comm->rank].taken++;
		move->at += chunk / size;
	}
	comm->received[move->peer]++;
	return 1;
}

/* ---- all ranks: a piece of data from each, which all can read */

static float get_float(int type, const void *p, size_t i)
{
	return type == FP32 ? ((const float *)p)[i] :
		type == BF16 ? float_of_bf16(((const uint16_t *)p)[i]) :
		float_of_fp16(((const uint16_t *)p)[i]);
}

static void put_float(int type, void *p, size_t i, float x)
{
	if (type == FP32)
		((float *)p)[i] = x;
	else
		((uint16_t *)p)[i] = type == BF16 ? bf16_of_float(x) :
			fp16_of_float(x);
}

static void sum(const struct move *move, void *to, size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		float real = 0;
		int whole = 0;

		for (int rank = 0; rank < move->comm->size; rank++) {
			const void *from = move->comm->shared->data[rank];

			if (move->type == INT32)
				whole += ((const int *)from)[first + i];
			else
				real += get_float(move->type, from, first + i);
		}
		if (move->type == INT32)
			((int *)to)[i] = whole;
		else
			put_float(move->type, to, i, real);
	}
}

/* Values of a piece: a reduce-scatter's has that many of each rank's part. */
static size_t count_piece(const struct move *move)
{
	size_t most = ROOM / sizes[move->type] /
		(move->kind == REDUCE_SCATTER ? (size_t)move->comm->size : 1);
	size_t left = move->count - move->at;

	return left < most ? left : most;
}

static void publish(const struct move *move, size_t n)
{
	struct ncclComm *comm = move->comm;
	size_t size = sizes[move->type];
	char *to = comm->shared->data[comm->rank];
	size_t parts = move->kind == REDUCE_SCATTER ? (size_t)comm->size : 1;

	if (move->kind == BROADCAST && move->peer != comm->rank)
		return;
	for (size_t part = 0; part < parts; part++) {
		const char *from = (const char *)move->send +
			(part * move->count + move->at) * size;

		touch(move, from, n * size, FAKE_STREAM_READ);
		memcpy(to + part * n * size, from, n * size);
	}
}

static void take(const struct move *move, size_t n)
{
	struct ncclComm *comm = move->comm;
	size_t size = sizes[move->type];
	char *to = (char *)move->receive + move->at * size;
	int parts = move->kind == ALL_GATHER ? comm->size : 1;

	if (move->kind == REDUCE && move->peer != comm->rank)
		return;
	for (int part = 0; part < parts; part++)
		touch(move, to + (size_t)part * move->count * size,
		      n * size, FAKE_STREAM_WRITE);
	if (move->kind == ALL_GATHER)
		for (int part = 0; part < parts; part++)
			memcpy(to + (size_t)part * move->count * size,
			       comm->shared->data[part], n * size);
	else if (move->kind == BROADCAST)
		memcpy(to, comm->shared->data[move->peer], n * size);
	else
		sum(move, to, move->kind == REDUCE_SCATTER ?
		    (size_t)comm->rank * n : 0, n);
}

/* Have all ranks come that far? */
static int have_all(const struct ncclComm *comm, const atomic_uint *counts,
		    unsigned int number)
{
	for (int rank = 0; rank < comm->size; rank++)
		if ((int)(counts[rank] - number) < 0)
			return 0;
	return 1;
}

/* Whether this piece is done */
static int exchange(struct move *move, size_t n)
{
	struct ncclComm *comm = move->comm;
	struct shared *shared = comm->shared;
	unsigned int number = comm->pieces + 1;
	uint64_t what = ((uint64_t)move->count << 16) ^
		(uint64_t)(move->kind << 8 | move->type << 4 | move->peer);

	if (!move->published) {
		if (!have_all(comm, shared->finished, number - 1))
			return 0;
		publish(move, n);
		shared->what[comm->rank] = what;
		shared->published[comm->rank] = number;
		move->published = 1;
	}
	if (!have_all(comm, shared->published, number))
		return 0;
	for (int rank = 0; rank < comm->size; rank++)
		if (shared->what[rank] != what)
			fake_differ(comm, names[move->kind]);
	take(move, n);
	shared->finished[comm->rank] = number;
	comm->pieces = number;
	move->published = 0;
	return 1;
}

static int collect_on(struct move *move)
{
	const char *wrong = getenv("FAKE_NCCL_WRONG");
	size_t n;

	if (move->comm->collected != move->ticket)
		return 0;
	for (; move->at < move->count; move->at += n) {
		n = count_piece(move);
		if (!exchange(move, n))
			return 0;
	}
	if (wrong && move->receive && move->count * sizes[move->type] > 4 &&
	    atoi(wrong) == move->comm->rank)
		*(char *)move->receive ^= 1;
	move->comm->collected++;
	return 1;
}

int fake_move(struct move *move)
{
	if (move->comm->magic == 0)	/* aborted */
		return 1;
	return move->kind == SEND ? send_on(move) :
		move->kind == RECEIVE ? receive_on(move) : collect_on(move);
}
