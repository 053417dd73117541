/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_BENCH_WORLD_H
#define DDP_BENCH_WORLD_H

#include "backend.h"

struct member {
	char host[64];
	char device[48];	/* after world_prepare */
	int node;		/* nodes count by their lowest rank */
	int local_rank;
};

/* The ranks that have met. */
struct world {
	const struct backend *backend;	/* NULL: they have not */
	int rank, size;
	int node_count;
	struct member *members;		/* one a rank */
	double open_seconds;		/* of backend->open */
	double connect_seconds;
};

double world_clock(void);		/* seconds */

/*
 * Meet the other ranks. Returns 0, or -1 with error set. mine is set, unless
 * NULL, if this is not the world that the environment promises: the other ranks
 * have still to be told.
 */
int world_open(struct world *world, const struct backend *backend,
	       struct ddp_error *mine, struct ddp_error *error);

/* The backend's close too. */
void world_close(struct world *world);

/* How many ranks node has. */
int world_node_size(const struct world *world, int node);

/*
 * Collective: fail on every rank, with the same error, if mine is one on any
 * rank, or the settings differ between ranks. The error names the rank, unless
 * all ranks say the same.
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
