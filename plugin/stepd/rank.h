/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_RANK_H
#define DDP_STEPD_RANK_H

#include "stepd/task.h"
#include "util/error.h"

/*
 * Compute the layout of the step and the task's rank in it, and check that
 * Slurm says the same. Fills in layout and vars.rank; returns 0, or -1.
 */
int ddp_task_find_rank(struct ddp_task *task, struct ddp_error *error);

#endif
