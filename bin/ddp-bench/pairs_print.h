/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all pairs of nodes, or its JSON. */
#ifndef DDP_BENCH_PAIRS_PRINT_H
#define DDP_BENCH_PAIRS_PRINT_H

#include "bench_options.h"
#include "bench_world.h"
#include "outliers.h"

struct pairs {
	double *times;		/* [pair_index], seconds */
	uint64_t *wrong;	/* [pair_index], elements */
	uint64_t wrong_sum;
	struct outliers slow;
};

/* For rank 0. */
void pairs_print(const struct world *world, const struct options *options,
		 const struct pairs *pairs);

#endif
