/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_OUTER_H
#define DDP_SRUN_OUTER_H

/*
 * In srun, sbatch and salloc, before they read their command line: take out of
 * the environment what an outer --ddp step has set in it. DDP_SET tells; where
 * it is not set there is no such step, and nothing is looked at.
 */
void ddp_outer_remove(void);

#endif
