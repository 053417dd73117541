/* SPDX-License-Identifier: BSD-3-Clause */
/* The time until ranks can communicate. */
#ifndef DDP_BENCH_BOOTSTRAP_H
#define DDP_BENCH_BOOTSTRAP_H

#include "bench_options.h"
#include "bench_world.h"

/*
 * Collective: measure and print, for each rank, the time until it can
 * communicate by world's backend: backend_nccl is libddp. One run measures one
 * of them, because MPI and libddp share PMIx in a process: who comes second
 * finds it begun, and Open MPI 5 then fails. *wrong is set if bytes other than
 * rank 0's were handed out.
 */
void bootstrap_run(struct world *world, const struct options *options,
		   bool *wrong);

#endif
