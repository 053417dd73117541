/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_OUTER_H
#define DDP_SRUN_OUTER_H

/*
 * Takes out of the environment what an outer --ddp step has set in it. srun,
 * sbatch and salloc call this before they read their command line. DDP_SET
 * tells; where it is not set there is no such step, and nothing is looked at.
 */
void ddp_outer_remove(void);

/*
 * Hides from srun's tasks what sbatch and salloc say to srun, and those options
 * of the job that are about the watch over one step. So no step within this one
 * inherits them.
 */
void ddp_outer_hide(void);

#endif
