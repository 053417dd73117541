/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks that can fail before anything runs. Each ends the program with a
 * sentence where it fails.
 */
#ifndef DDP_SRUN_CHECK_H
#define DDP_SRUN_CHECK_H

#include <stdbool.h>

/*
 * Check the options, in srun, sbatch and salloc. Returns whether --ddp is on;
 * --ddp=help prints the options, and ends the program.
 */
bool ddp_check_options(void);

/* Where srun hides its options nothing can be filled in: -n must be there. */
void ddp_check_tasks(void);

/* Say what a step waits for that is started in a task of another. */
void ddp_check_step(void);

/* What --ddp=dry-run needs, and what it cannot be used with. */
void ddp_check_dry_run(void);

/*
 * Warn where a signal before the job's end goes to others than the ranks. In
 * srun when the component's command is known.
 */
void ddp_check_signals(void);

/* In sbatch and salloc: whether the request has CPUs enough. */
void ddp_check_cpus(void);

#endif
