/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks that have met, and how they act together. */
#ifndef DDP_BENCH_BENCH_WORLD_H
#define DDP_BENCH_BENCH_WORLD_H

#include "backend.h"

struct member {
	char host[64];
	char device[48];	/* after world_prepare */
	int node;		/* nodes are counted by their lowest rank */
	int local_rank;
};

/* The ranks that have met. */
struct world {
	const struct backend *backend;	/* NULL: they have not met */
	int rank, size;
	int node_count;
	struct member *members;		/* one a rank */
	double open_seconds;		/* of backend->open */
	double connect_seconds;
};

/*
 * Meet the other ranks. Returns 0, or -1 with error set. If this is not the
 * world that the environment promises, mine (NULL: not wanted) is set, and the
 * other ranks have still to be told.
 */
int world_open(struct world *world, const struct backend *backend,
	       struct ddp_error *mine, struct ddp_error *error);

/* Closes the backend as well. */
void world_close(struct world *world);

/* Set a rank's node by its host, once all ranks before it have theirs. */
void world_find_node(struct world *world, int rank);

/* The rank on another node with this rank's local rank; -1: none. */
int world_find_peer(const struct world *world, int node);

/* Returns how many ranks a node has. */
int world_node_size(const struct world *world, int node);

/*
 * Returns how many ranks of each of two nodes have a partner on the other one.
 */
int world_pair_width(const struct world *world, int a, int b);

/*
 * Collective: as tool_agree(), fail on every rank if mine is an error on any of
 * them or the settings differ.
 */
int world_agree(const struct world *world, const char *settings,
		const struct ddp_error *mine, struct ddp_error *error);

/*
 * Collective: choose devices, reserve size bytes (0: none) at *buffer, and
 * connect the ranks; fails on all ranks or on none.
 */
int world_prepare(struct world *world, bool share, size_t size, void **buffer,
		  struct ddp_error *error);

#endif
