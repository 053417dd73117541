/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every pair of nodes: rank i of the one and rank i of the other send each
 * other the same bytes, both ways at once. In one round of a tournament each
 * node has one partner, so all are busy and none is shared; what a round made
 * suspect is measured once more, one pair at a time, and the shorter time
 * counts.
 */
#ifndef DDP_BENCH_PAIRS_H
#define DDP_BENCH_PAIRS_H

#include "bench_options.h"
#include "slow.h"
#include "world.h"

struct pairs {
	double *times;		/* [pair_index], seconds */
	uint64_t *wrong;	/* [pair_index], elements */
	uint64_t wrong_sum;
	struct slow slow;
};

/* Collective: measure and print; *bad if something is slow or was wrong. */
int pairs_run(struct world *world, const struct options *options, bool *bad,
	      struct ddp_error *error);

/* Rank 0's. */
void pairs_print(const struct world *world, const struct options *options,
		 const struct pairs *pairs);

/* Ranks of each of the two that take part. */
int pairs_width(const struct world *world, int a, int b);

#endif
