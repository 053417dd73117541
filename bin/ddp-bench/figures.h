/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints rank 0's figures of collectives: nccl-tests' table, or JSON lines. */
#ifndef DDP_BENCH_FIGURES_H
#define DDP_BENCH_FIGURES_H

#include "bench_options.h"
#include "bench_world.h"

/* The figures of one size, in place or out of place. */
struct figure {
	double seconds;		/* of one call */
	uint64_t wrong;		/* elements, of all ranks */
	int wrong_ranks, first_wrong;
};

double figure_algbw(const struct figure *figure, const struct shape *shape);
double figure_busbw(const struct figure *figure, const struct shape *shape);

/* Print the head: who measures what. */
void figures_begin(const struct world *world, const struct options *options);

/* Print a row; figures are those out of place and in place. */
void figures_row(const struct world *world, const struct options *options,
		const struct shape *shape, const struct figure figures[2]);

/* Print the end; wrong is the sum over all rows, busbw the average. */
void figures_end(const struct options *options, uint64_t wrong, double busbw);

/*
 * Print "# ddp-bench 0.1.0, backend mpi (Open MPI v4.1.4), 4 ranks on 2 nodes"
 * and the ranks: every table begins so.
 */
void figures_world(const struct world *world);

#endif
