/* SPDX-License-Identifier: BSD-3-Clause */
/* The time until ranks can communicate. */
#ifndef DDP_BENCH_BOOTSTRAP_H
#define DDP_BENCH_BOOTSTRAP_H

#include "bench_options.h"
#include "bench_world.h"

/*
 * Collective: measure and print, for each rank, the time until it can
 * communicate by libddp and by MPI. world is backend_nccl's, which is libddp's
 * job. *wrong is set if one of them handed out bytes other than rank 0's.
 */
int bootstrap_run(struct world *world, const struct options *options,
		  bool *wrong, struct ddp_error *error);

/*
 * End MPI, if bootstrap_run has begun it. Call it after world_close: MPI must
 * outlive libddp's job.
 */
void bootstrap_end(void);

#endif
