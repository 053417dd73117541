/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies what the site's administrator wants, where it depends on the job's
 * partition, or on who asks. It is decided here, as the user, and so it is
 * advice: who wants to can get around it.
 */
#ifndef DDP_SRUN_POLICY_H
#define DDP_SRUN_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Finds the partition of a component with --ddp, so that the site's defaults
 * for it hold. Ends the program with a sentence if the site does not allow what
 * was asked for. srun, sbatch and salloc call this.
 */
void ddp_policy_check(uint32_t component);

/*
 * The job runs, and so its partition is certain: the defaults for it hold from
 * now on. Where Slurm leaves it open to the tasks, they are told.
 */
void ddp_policy_launch(uint32_t job_id, bool heterogeneous);

#endif
