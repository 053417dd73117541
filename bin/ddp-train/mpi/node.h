/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks over MPI; read this first. Those of a node have their buffers
 * ("copies") in one shared window (window.h) from the start, so that a rank
 * sums its slice straight from all copies into all copies. Between nodes slices
 * travel in chunks (exchange.h). mpi.c works the tickets off. What a rank waits
 * for has a deadline (watch.h).
 *
 * A rank publishes two counters in the window: `ready`, the number of tickets
 * whose event has come, and `done`, the number after which it touches neither
 * its own copy nor another. Tickets are worked off in order, one at a time, by
 * poll() alone: in the backward pass no rank waits for another.
 */
#ifndef DDP_TRAIN_MPI_NODE_H
#define DDP_TRAIN_MPI_NODE_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi/window.h"

struct collective;
struct watch;

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

/* Find the ranks of this node; sets nodes and most of collective. */
void node_open(struct node *node, struct watch *watch,
	       struct collective *collective);

/*
 * Sets the window's size, for so many bytes of each rank, which has `own`
 * beside them. Call it before the window's steps.
 */
void node_plan_window(struct node *node, size_t bytes, size_t own);

/* Finds each rank's counters and copy in the window, after its steps. */
void node_use_window(struct node *node);

/*
 * Unmap bytes begin .. begin + count - 1 of the other ranks' copies until this
 * process touches them again. They stay as they are.
 */
void node_forget(const struct node *node, size_t begin, size_t count);

/* Publish that this rank is ready for so many tickets, or done with them. */
void node_publish(const struct node *node, enum count count, uint64_t tickets);

/* How many all ranks of this node have published. */
uint64_t node_find_least(const struct node *node, enum count count);

/* Collective within the node. */
void node_close(struct node *node);

#endif
