/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_OUTER_H
#define DDP_SRUN_OUTER_H

/*
 * In srun, sbatch and salloc, before they read their command line: take out of
 * the environment what an outer --ddp step has set in it. DDP_SET tells; where
 * it is not set there is no such step, and nothing is looked at.
 */
void ddp_outer_remove(void);

/*
 * In srun: hide from the tasks what sbatch and salloc say to it, and those
 * options of the job that are about the watch over one step, so that no step
 * within this one inherits them.
 */
void ddp_outer_hide(void);

#endif
