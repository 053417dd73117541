/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures every pair of nodes: rank i of one node and rank i of the other send
 * each other as many bytes, both ways at once. In a round of a tournament each
 * node has one partner, so that all nodes are busy and none is shared. Pairs
 * that seem slow are measured again, one at a time; the shorter time counts.
 */
#ifndef DDP_BENCH_PAIRS_H
#define DDP_BENCH_PAIRS_H

#include "bench_options.h"
#include "bench_world.h"

/* Collective: measure and print; *bad if something is slow or was wrong. */
int pairs_run(struct world *world, const struct options *options, bool *bad,
	      struct ddp_error *error);

#endif
