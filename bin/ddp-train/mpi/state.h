/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks over MPI.  Those of a node keep their buffers ("copies") in one
 * shared window from the start, so that a rank sums its slice straight from
 * all copies into all copies; between nodes slices travel in chunks.
 *
 * A rank publishes two counters there: `ready`, how many tickets it has
 * started whose event has come, and `done`, with how many it will touch
 * neither its own copy nor another any more.  Tickets are worked off in order,
 * one at a time, by poll() alone: in the backward pass nobody waits for
 * anybody.
 *
 * Order of the sums, each by fold_tree(): over all ranks in rank order if the
 * plan says deterministic, on one node, or where nodes have not equally many
 * ranks; else over the ranks of each node, then over the nodes in their order.
 */
#ifndef DDP_TRAIN_MPI_STATE_H
#define DDP_TRAIN_MPI_STATE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective.h"
#include "mpi/window.h"

struct ddp_error;

enum {
	MESSAGE = 1 << 17,		/* floats; more where a slice would
					   have very many */
	MESSAGE_HEADER = 4096		/* bytes that suffice for MPI's own */
};

enum count { READY, DONE, COUNTS };

struct counter {		/* alone in its cache line */
	_Alignas(64) _Atomic uint64_t tickets;
};

/* Where a rank of the world is. */
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
	float **copy;			/* [size]: likewise */
};

struct ticket {
	enum collective_op op;
	size_t offset, count;
	int event;
	int number;			/* as it goes into MPI's tags */
};

/*
 * What a rank exchanges by message, with its peers: each sends the others its
 * part of their slices and, once an owner has all parts of a chunk, gets the
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
	size_t chunk;			/* floats of a message, at most */
	float *staging;			/* [peers][stride] */
	size_t stride;
	const float **sources;		/* [terms or ranks of this node] */

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

/* node.c */

/* Find the ranks of this node; sets node and nodes of collective. */
void node_open(struct node *node, struct collective *collective);

/* Before the window's steps: a rank's counters and so many bytes lie in it. */
void node_plan_window(struct node *node, size_t bytes);

/* After them. */
void node_use_window(struct node *node);

/*
 * Take the other ranks' values begin .. begin + count - 1 off what this process
 * has mapped, until it touches them again; they stay as they are.
 */
void node_forget(const struct node *node, size_t begin, size_t count);

/* This rank is ready for so many tickets, or done with them. */
void node_publish(const struct node *node, enum count count, uint64_t tickets);

/* So many are all ranks of this node. */
uint64_t node_find_least(const struct node *node, enum count count);

/* Collective within the node. */
void node_close(struct node *node);

/* exchange.c */

/* After node_alloc().  Returns 0, or -1 with error set. */
int exchange_alloc(struct exchange *exchange, const struct node *node,
		   const struct collective *collective,
		   const struct collective_plan *plan,
		   struct ddp_error *error);

/* All ranks of this node are ready, and the ticket before is finished. */
void exchange_begin(struct exchange *exchange, const struct ticket *ticket);

/* Whether this rank's part of the ticket is done; never blocks. */
bool exchange_poll(struct exchange *exchange);

/* Without a ticket: let MPI take in what has come, lest its sender wait. */
void exchange_idle(const struct exchange *exchange);

void exchange_free(struct exchange *exchange);

#endif
