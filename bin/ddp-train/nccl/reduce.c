/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves a bucket between the ranks by calls of NCCL, in place and in the queue
 * for what they exchange. NCCL adds 16-bit values as such, in an order of its
 * own, which the number of ranks decides. So --deterministic, whose values are
 * fp32, has each rank send every owner its slice, and add what it gets itself.
 */
#include "nccl/ranks.h"

static const int types[] = {
	[DEVICE_FP32] = DDP_NCCL_FLOAT, [DEVICE_BF16] = DDP_NCCL_BFLOAT16,
	[DEVICE_FP16] = DDP_NCCL_HALF
};

/* A range of the buffer, and how NCCL takes it. */
struct move {
	struct nccl *nccl;
	char *at;
	size_t count, bytes;		/* values; of one */
	size_t begin, length;		/* this rank's slice */
	int type;
	void *stream;
};

size_t nccl_count_parts(const struct collective *collective, size_t largest)
{
	size_t begin, count = largest / sizeof(float);

	return collective_find_slice(count, 0, collective->size, &begin) *
	       (size_t)collective->size * sizeof(float);
}

/* Returns true if all ranks have as many values, as NCCL's calls need. */
static bool is_even(const struct move *move)
{
	size_t size = (size_t)move->nccl->collective->size, begin;
	size_t first = collective_find_slice(move->count, 0, (int)size, &begin);

	return first * size == move->count;
}

static void begin_group(struct nccl *nccl)
{
	nccl_finish(nccl, nccl->buckets, "ncclGroupStart",
		    nccl->calls.group_start());
}

static void end_group(struct nccl *nccl)
{
	nccl_finish(nccl, nccl->buckets, "ncclGroupEnd",
		    nccl->calls.group_end());
}

/* Calls within a group only note what its end enqueues. */
static void check_noted(struct nccl *nccl, const char *call, int result)
{
	if (result != DDP_NCCL_IN_PROGRESS)
		nccl_finish(nccl, nccl->buckets, call, result);
}

static void sum(const struct move *move)
{
	struct nccl *nccl = move->nccl;

	nccl_finish(nccl, nccl->buckets, "ncclAllReduce",
		    nccl->calls.all_reduce(move->at, move->at, move->count,
					   move->type, DDP_NCCL_SUM,
					   nccl->buckets, move->stream));
}

/*
 * Gives each rank its slice of the sum. Slices of the last bucket may be
 * unequal: there each rank gets the whole.
 */
static void scatter(const struct move *move)
{
	char *own = move->at + move->begin * move->bytes;
	struct nccl *nccl = move->nccl;

	if (!is_even(move)) {
		sum(move);
		return;
	}
	nccl_finish(nccl, nccl->buckets, "ncclReduceScatter",
		    nccl->calls.reduce_scatter(move->at, own, move->length,
					       move->type, DDP_NCCL_SUM,
					       nccl->buckets, move->stream));
}

static void broadcast(const struct move *move, size_t begin, size_t count,
		      int root)
{
	char *at = move->at + begin * move->bytes;
	struct nccl *nccl = move->nccl;

	check_noted(nccl, "ncclBroadcast",
		    nccl->calls.broadcast(at, at, count, move->type, root,
					  nccl->buckets, move->stream));
}

static void gather_unevenly(const struct move *move)
{
	struct nccl *nccl = move->nccl;
	int size = nccl->collective->size;

	begin_group(nccl);
	for (int rank = 0; rank < size; rank++) {
		size_t begin, length = collective_find_slice(move->count, rank,
							     size, &begin);

		if (length > 0)
			broadcast(move, begin, length, rank);
	}
	end_group(nccl);
}

static void gather(const struct move *move)
{
	char *own = move->at + move->begin * move->bytes;
	struct nccl *nccl = move->nccl;

	if (!is_even(move)) {
		gather_unevenly(move);
		return;
	}
	nccl_finish(nccl, nccl->buckets, "ncclAllGather",
		    nccl->calls.all_gather(own, move->at, move->length,
					   move->type, nccl->buckets,
					   move->stream));
}

static void broadcast_all(const struct move *move)
{
	struct nccl *nccl = move->nccl;

	nccl_finish(nccl, nccl->buckets, "ncclBroadcast",
		    nccl->calls.broadcast(move->at, move->at, move->count,
					  move->type, 0, nccl->buckets,
					  move->stream));
}

/* Exchanges with a rank: my values of its slice for its values of mine. */
static void swap(const struct move *move, int rank, size_t room)
{
	struct nccl *nccl = move->nccl;
	size_t begin, length;

	length = collective_find_slice(move->count, rank,
				       nccl->collective->size, &begin);
	if (length > 0)
		check_noted(nccl, "ncclSend",
			    nccl->calls.send(move->at + begin * move->bytes,
					     length, move->type, rank,
					     nccl->buckets, move->stream));
	if (move->length > 0)
		check_noted(nccl, "ncclRecv",
			    nccl->calls.receive(nccl->parts +
						(size_t)rank * room,
						move->length, move->type, rank,
						nccl->buckets, move->stream));
}

/* The slice of each rank: the sum in the order of the ranks. */
static void fold(const struct move *move)
{
	struct nccl *nccl = move->nccl;
	const struct collective *collective = nccl->collective;
	struct device *device = nccl->device;
	float *own = (float *)(void *)move->at + move->begin;
	size_t begin, room;

	room = collective_find_slice(move->count, 0, collective->size, &begin);
	begin_group(nccl);
	for (int rank = 0; rank < collective->size; rank++)
		if (rank != collective->rank)
			swap(move, rank, room);
	end_group(nccl);
	if (move->length == 0)
		return;
	device->table->copy(device, QUEUE_COMM, nccl->parts +
			    (size_t)collective->rank * room, own,
			    move->length * sizeof(*own));
	device->table->fold(device, QUEUE_COMM, own, nccl->parts,
			    collective->size, room, move->length);
}

void nccl_move(struct nccl *nccl, enum collective_op op, char *at,
	       size_t count, enum device_type type)
{
	const struct collective *collective = nccl->collective;
	struct device *device = nccl->device;
	struct move move = {
		.nccl = nccl, .at = at, .count = count, .type = types[type],
		.bytes = device_type_bytes(type),
		.stream = device->table->stream(device, QUEUE_COMM)
	};
	bool folds = nccl->deterministic && collective->size > 1 &&
		     (op == ALL_REDUCE || op == REDUCE_SCATTER);

	move.length = collective_find_slice(count, collective->rank,
					    collective->size, &move.begin);
	if (folds)
		fold(&move);
	if (op == ALL_GATHER || (op == ALL_REDUCE && folds))
		gather(&move);
	else if (op == BROADCAST)
		broadcast_all(&move);
	else if (op == REDUCE_SCATTER && !folds)
		scatter(&move);
	else if (op == ALL_REDUCE)
		sum(&move);
}
