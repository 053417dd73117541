/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between nodes: chunks of slices, their sums, and back. */
#include <stdlib.h>
#include <string.h>

#include "mpi/reduce.h"
#include "step/sum_tree.h"
#include "util/error.h"

enum {
	CHUNKS = 256,		/* of a ticket, at most */
	TAGGED = 64,		/* tickets: TAGGED * CHUNKS * 2 tags are as
				   many as every MPI has */
	BLOCK = 4096,		/* values that stay in the L1 cache */
	WIDEST = sizeof(float)	/* bytes of a value */
};

/* The owner of the slice that a message belongs to: the peer or this rank. */
enum side { THEIRS, MINE };

/* Byte `begin` of my copy. */
static char *get_own(const struct exchange *exchange, size_t begin)
{
	return exchange->node->copy[exchange->node->rank] + begin;
}

/* The values of the ticket that a rank owns: see collective_find_slice(). */
static size_t find_slice(const struct exchange *exchange, int rank,
			 size_t *begin)
{
	const struct ticket *ticket = &exchange->ticket;

	if (ticket->op != BROADCAST)
		return collective_find_slice(ticket->count, rank,
					     exchange->size, begin);
	*begin = 0;
	return rank == 0 ? ticket->count : 0;
}

/* The values of a rank's chunk, from byte *begin of the buffer. */
static size_t find_chunk(const struct exchange *exchange, int rank, int chunk,
			 size_t *begin)
{
	const struct ticket *ticket = &exchange->ticket;
	size_t first, count = find_slice(exchange, rank, &first);
	size_t most = exchange->chunk / ticket->bytes;
	size_t skip = (size_t)chunk * most;

	*begin = ticket->begin + (first + skip) * ticket->bytes;
	if (count <= skip)
		return 0;
	return count - skip < most ? count - skip : most;
}

/* Returns where peer p's part of my slice lies, from buffer byte begin on. */
static char *find_staged(const struct exchange *exchange, int p, size_t begin)
{
	const struct ticket *ticket = &exchange->ticket;
	size_t first;

	find_slice(exchange, exchange->rank, &first);
	return exchange->staging + (size_t)p * exchange->stride +
		(begin - ticket->begin - first * ticket->bytes);
}

/* My copy of these values becomes the sum over this node's ranks. */
static void sum_node(struct exchange *exchange, size_t begin, size_t count)
{
	const struct node *node = exchange->node;

	if (!exchange->nested || node->size == 1)
		return;
	for (int rank = 0; rank < node->size; rank++)
		exchange->sources[rank] = node->copy[rank] + begin;
	fold_tree(exchange->ticket.type, exchange->sources, node->size,
		  get_own(exchange, begin), count);
}

/* My copy of these values of my slice becomes the sum of all terms. */
static void sum_terms(struct exchange *exchange, size_t begin, size_t count)
{
	for (int i = 0; i < exchange->terms; i++) {
		int term = exchange->term[i];

		exchange->sources[i] = term < 0 ?
			find_staged(exchange, -1 - term, begin) :
			exchange->node->copy[term] + begin;
	}
	fold_tree(exchange->ticket.type, exchange->sources, exchange->terms,
		  get_own(exchange, begin), count);
}

static void spread_values(const struct exchange *exchange, size_t begin,
			  size_t count)
{
	const struct node *node = exchange->node;

	for (int rank = 0; rank < node->size; rank++)
		if (rank != node->rank)
			memcpy(node->copy[rank] + begin,
			       get_own(exchange, begin),
			       count * exchange->ticket.bytes);
}

/* Block by block, so that each step finds the block in the cache. */
static void sum_all(struct exchange *exchange, size_t begin, size_t count)
{
	for (size_t done = 0; done < count; done += BLOCK) {
		size_t at = begin + done * exchange->ticket.bytes;
		size_t n = count - done < BLOCK ? count - done : BLOCK;

		sum_node(exchange, at, n);
		sum_terms(exchange, at, n);
		if (exchange->ticket.op == ALL_REDUCE)
			spread_values(exchange, at, n);
	}
}

/*
 * Post a chunk's message to or from peer p, of the peer's slice or mine. The
 * owner of a slice receives parts and sends the sum.
 */
static void post_message(struct exchange *exchange, int chunk, int p,
			 enum side side, bool sum)
{
	int peer = exchange->peer[p];
	int slot = (chunk * exchange->peers + p) * 2 + side;
	int tag = (exchange->ticket.number % TAGGED * CHUNKS + chunk) * 2 +
		sum;
	size_t begin, count = find_chunk(exchange, side == MINE ?
					 exchange->rank : peer, chunk, &begin);
	MPI_Request *request = &exchange->requests[slot];
	int bytes = (int)(count * exchange->ticket.bytes);
	void *at = get_own(exchange, begin);

	if (count == 0)
		return;
	if (side == MINE && !sum)
		at = find_staged(exchange, p, begin);
	if ((side == MINE) == sum)
		MPI_Isend(at, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			  request);
	else
		MPI_Irecv(at, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			  request);
	exchange->sums[slot] = sum;
	exchange->pending++;
}

/* All parts of a chunk of my slice are here. */
static void finish_chunk(struct exchange *exchange, int chunk)
{
	size_t begin, count = find_chunk(exchange, exchange->rank, chunk,
					 &begin);

	sum_all(exchange, begin, count);
	if (exchange->ticket.op == ALL_REDUCE)
		for (int p = 0; p < exchange->peers; p++)
			post_message(exchange, chunk, p, MINE, true);
}

static void complete_message(struct exchange *exchange, int slot)
{
	enum side side = (enum side)(slot % 2);
	int p = slot / 2 % exchange->peers;
	int chunk = slot / 2 / exchange->peers;
	size_t begin, count;

	exchange->pending--;
	if (side == MINE) {
		if (!exchange->sums[slot] &&
		    ++exchange->arrived[chunk] == exchange->peers)
			finish_chunk(exchange, chunk);
	} else if (exchange->sums[slot]) {
		count = find_chunk(exchange, exchange->peer[p], chunk, &begin);
		if (exchange->nested)
			spread_values(exchange, begin, count);
	} else if (exchange->ticket.op == ALL_REDUCE) {
		post_message(exchange, chunk, p, THEIRS, true);
	}
}

/* Send each peer my part of a chunk of its slice, or my own sum. */
static void send_chunk(struct exchange *exchange, int chunk, bool sum)
{
	for (int p = 0; p < exchange->peers; p++) {
		size_t begin, count = find_chunk(exchange, exchange->peer[p],
						 chunk, &begin);

		if (!sum)
			sum_node(exchange, begin, count);
		post_message(exchange, chunk, p, sum ? MINE : THEIRS, sum);
	}
}

void exchange_begin(struct exchange *exchange, const struct ticket *ticket)
{
	bool sums = ticket->op == ALL_GATHER || ticket->op == BROADCAST;
	size_t begin, most;

	exchange->ticket = *ticket;
	most = find_slice(exchange, 0, &begin) * ticket->bytes;
	exchange->chunks = (int)((most + exchange->chunk - 1) /
				 exchange->chunk);
	for (int chunk = 0; chunk < exchange->chunks; chunk++) {
		exchange->arrived[chunk] = 0;
		for (int p = 0; p < exchange->peers; p++)
			post_message(exchange, chunk, p, sums ? THEIRS : MINE,
				     sums);
	}
	for (int chunk = 0; chunk < exchange->chunks; chunk++)
		send_chunk(exchange, chunk, sums);
	most = find_slice(exchange, exchange->rank, &begin);
	begin = ticket->begin + begin * ticket->bytes;
	if (sums)
		spread_values(exchange, begin, most);
	else if (exchange->peers == 0)
		sum_all(exchange, begin, most);
}

bool exchange_poll(struct exchange *exchange)
{
	int slots = exchange->chunks * exchange->peers * 2;
	int count;

	if (exchange->pending == 0)
		return true;
	MPI_Testsome(slots, exchange->requests, &count, exchange->completed,
		     MPI_STATUSES_IGNORE);
	for (int i = 0; i < count; i++)
		complete_message(exchange, exchange->completed[i]);
	return exchange->pending == 0;
}

void exchange_idle(const struct exchange *exchange)
{
	int flag;

	if (exchange->peers > 0)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
			   MPI_STATUS_IGNORE);
}

static void add_term(struct exchange *exchange, int rank)
{
	const struct place *place = exchange->node->place;
	int *term = &exchange->term[exchange->terms++];

	if (place[rank].leader == place[exchange->rank].leader) {
		*term = place[rank].local;
		return;
	}
	*term = -1 - exchange->peers;
	exchange->peer[exchange->peers++] = rank;
}

/* All ranks; if nested, the rank of each node with my local rank. */
static void find_terms(struct exchange *exchange)
{
	const struct place *place = exchange->node->place;

	for (int first = 0; first < exchange->size; first++) {
		int rank = first;

		if (exchange->nested && place[first].leader != first)
			continue;
		while (exchange->nested &&
		       (place[rank].leader != first ||
			place[rank].local != exchange->node->rank))
			rank++;
		add_term(exchange, rank);
	}
}

/* One more than asked: calloc() may return NULL for none. */
static void *allocate(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

static int alloc_messages(struct exchange *exchange, size_t largest)
{
	size_t begin, chunks, slots;

	exchange->chunk = (largest / CHUNKS / DEVICE_ALIGN + 1) * DEVICE_ALIGN;
	if (exchange->chunk < MESSAGE)
		exchange->chunk = MESSAGE;
	chunks = largest / exchange->chunk + 1;
	slots = chunks * (size_t)exchange->peers * 2;
	/* The slice of the widest values is the longest in bytes. */
	exchange->stride = WIDEST * collective_find_slice(
		(largest + WIDEST - 1) / WIDEST, 0, exchange->size, &begin);
	exchange->staging = allocate(exchange->stride * (size_t)exchange->peers,
				     sizeof(*exchange->staging));
	exchange->requests = allocate(slots, sizeof(*exchange->requests));
	exchange->sums = allocate(slots, sizeof(*exchange->sums));
	exchange->completed = allocate(slots, sizeof(*exchange->completed));
	exchange->arrived = allocate(chunks, sizeof(*exchange->arrived));
	if (!exchange->staging || !exchange->requests || !exchange->sums ||
	    !exchange->completed || !exchange->arrived)
		return -1;
	for (size_t slot = 0; slot < slots; slot++)
		exchange->requests[slot] = MPI_REQUEST_NULL;
	return 0;
}

int exchange_alloc(struct exchange *exchange, const struct node *node,
		   const struct collective *collective,
		   const struct collective_plan *plan,
		   struct ddp_error *error)
{
	size_t ranks = (size_t)collective->size;

	exchange->node = node;
	exchange->rank = collective->rank;
	exchange->size = collective->size;
	exchange->nested = collective->nodes > 1 && !plan->deterministic &&
		collective->most * collective->nodes == collective->size;
	exchange->peer = allocate(ranks, sizeof(*exchange->peer));
	exchange->term = allocate(ranks, sizeof(*exchange->term));
	exchange->sources = allocate(ranks, sizeof(*exchange->sources));
	if (exchange->peer && exchange->term && exchange->sources) {
		find_terms(exchange);
		if (alloc_messages(exchange, plan->largest) == 0)
			return 0;
	}
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			     "messages between nodes; make buckets smaller");
}

void exchange_free(struct exchange *exchange)
{
	free(exchange->peer);
	free(exchange->term);
	free(exchange->sources);
	free(exchange->staging);
	free(exchange->requests);
	free(exchange->sums);
	free(exchange->completed);
	free(exchange->arrived);
}
