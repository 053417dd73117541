/* SPDX-License-Identifier: BSD-3-Clause */
/* What rank 0 prints of collectives: nccl-tests' table, or JSON lines. */
#ifndef DDP_BENCH_REPORT_H
#define DDP_BENCH_REPORT_H

#include "bench_options.h"
#include "world.h"

/* Of one size, in place or not. */
struct figure {
	double seconds;		/* of one call */
	uint64_t wrong;		/* elements, of all ranks */
	int wrong_ranks, first_wrong;
};

double figure_algbw(const struct figure *figure, const struct shape *shape);
double figure_busbw(const struct figure *figure, const struct shape *shape);

/* What is measured, by whom: before the first row. */
void report_begin(const struct world *world, const struct options *options);

/* figures: out of place, in place. */
void report_row(const struct world *world, const struct options *options,
		const struct shape *shape, const struct figure figures[2]);

/* wrong: the sum over all rows; busbw: the average. */
void report_end(const struct options *options, uint64_t wrong, double busbw);

/* "# ddp-bench 0.1.0, backend mpi (Open MPI v4.1.4), 4 ranks on 2 nodes" and
 * the ranks: the head of every table. */
void report_world(const struct world *world);

#endif
