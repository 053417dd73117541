/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a node's slurmstepd starts its tasks it acts as the user, in all its
 * threads. Then it takes the credential of another node's slurmstepd, which is
 * for root, for a wrong one ("Munge decode failed: Unauthorized credential"),
 * and closes the connection; what was sent is lost, and all ranks wait for
 * ever. Slurm 22.05 does so, and the source of 26.05 still has it. MPI begins
 * too late for that, but a rank in C can be quicker than the start of others
 * on another node.
 */
#ifndef DDP_JOB_EARLY_H
#define DDP_JOB_EARLY_H

#include <stdint.h>

enum { DDP_EARLY_MS = 300 };	/* ranks of MPI are older by then */

/*
 * Under Slurm, wait until this process is DDP_EARLY_MS old, but not beyond a
 * deadline of ddp_clock_ms. A program that has asked CUDA for its GPUs is.
 */
void ddp_early_wait(int64_t deadline);

#endif
