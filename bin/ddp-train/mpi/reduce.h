/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums over all ranks. The order of the sums, each by fold_tree(): over all
 * ranks in rank order if the plan says deterministic, on one node, or if nodes
 * have different numbers of ranks; else over the ranks of each node, then over
 * the nodes in their order. Messages have values of the ticket's type.
 */
#ifndef DDP_TRAIN_MPI_REDUCE_H
#define DDP_TRAIN_MPI_REDUCE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective.h"
#include "mpi/window.h"

struct ddp_error;

enum count { READY, DONE, COUNTS };

struct counter {		/* alone in its cache line */
	_Alignas(64) _Atomic uint64_t tickets;
};

/* The node of a rank of the world, and the rank's place there. */
struct place {
	int leader;			/* the lowest rank of its node */
	int local;			/* its rank within the node */
};

struct node {
	MPI_Comm comm;
	int rank, size;			/* within this node */
	struct place *place;		/* [ranks of the world] */
	struct window window;
	struct counter **counters;	/* [size]: each rank's, [COUNTS], in
					   the window */
	char **copy;			/* [size]: likewise */
};

enum {
	MESSAGE = 1 << 19,		/* bytes; more where a slice would
					   have very many */
	MESSAGE_HEADER = 4096		/* bytes that suffice for MPI's own */
};

struct ticket {
	enum collective_op op;
	enum device_type type;
	size_t bytes;			/* of a value */
	size_t begin;			/* bytes before the first */
	size_t count;			/* values */
	int event;
	int number;			/* as it goes into MPI's tags */
};

/*
 * The exchange of a rank with its peers by message. Each sends the others its
 * part of their slices. Once an owner has all parts of a chunk, it sends the
 * sum back into the same place.
 */
struct exchange {
	const struct node *node;
	int rank, size;			/* within the world */
	bool nested;			/* sums within nodes come first; the
					   peers are those of equal local rank,
					   and else all on other nodes */
	int peers;
	int *peer;			/* [peers]: their ranks */
	int terms;
	int *term;			/* [terms]: what a slice is the sum of,
					   in order: l >= 0, copy l of this
					   node; -1 - p, what peer p sent */
	size_t chunk;			/* bytes of a message, at most */
	char *staging;			/* [peers][stride] */
	size_t stride;
	const void **sources;		/* [terms or ranks of this node] */

	/* The ticket under way. */
	struct ticket ticket;
	int chunks;			/* of the longest slice */
	int pending;			/* messages */
	MPI_Request *requests;		/* [chunks][peers][2], by side */
	bool *sums;			/* likewise: carries the sum, not a
					   part of it */
	int *completed;			/* likewise: for MPI_Testsome */
	int *arrived;			/* [chunks]: parts of my slice */
};

/* Allocates it once the node's copies are there. Returns 0, or -1 with error set. */
int exchange_alloc(struct exchange *exchange, const struct node *node,
		   const struct collective *collective,
		   const struct collective_plan *plan,
		   struct ddp_error *error);

/* Begin once all ranks of this node are ready and the last ticket is done. */
void exchange_begin(struct exchange *exchange, const struct ticket *ticket);

/* Returns true once this rank's part of the ticket is done; never blocks. */
bool exchange_poll(struct exchange *exchange);

/* Lets MPI receive without a ticket, so that no sender waits for this rank. */
void exchange_idle(const struct exchange *exchange);

void exchange_free(struct exchange *exchange);

#endif
