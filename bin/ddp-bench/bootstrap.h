/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_BENCH_BOOTSTRAP_H
#define DDP_BENCH_BOOTSTRAP_H

#include "bench_options.h"
#include "world.h"

/*
 * Collective: the time until ranks can communicate, by libddp and by MPI, rank
 * by rank. world is that of backend_nccl, which is libddp's job. *wrong if one
 * of the two handed out other bytes than rank 0's.
 */
int bootstrap_run(struct world *world, const struct options *options,
		  bool *wrong, struct ddp_error *error);

/* The end of MPI, if bootstrap_run has begun it; after the world's: MPI must
 * outlive libddp's job. */
void bootstrap_end(void);

#endif
