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

/*
 * Refuses a step without a number of tasks, such as -n. Nothing can be filled
 * in where srun hides its options.
 */
void ddp_check_tasks(void);

/* Say what a step waits for that is started in a task of another. */
void ddp_check_step(void);

/*
 * Refuses options that --ddp=dry-run cannot be used with, and an MPI type that
 * is no pmix. Sets DDP_TELL_COMMAND for the tasks.
 */
void ddp_check_dry_run(void);

/*
 * Warn where a signal before the job's end goes to others than the ranks. In
 * srun when the component's command is known.
 */
void ddp_check_signals(void);

/* Checks in sbatch and salloc that the request has CPUs enough. */
void ddp_check_cpus(void);

#endif
