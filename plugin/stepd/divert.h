/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_DIVERT_H
#define DDP_STEPD_DIVERT_H

#include "stepd/task.h"
#include "util/error.h"

/*
 * Let the task's output go through the tee, where somebody needs that: its
 * standard error in a supervised step, and both with --ddp-logs or --ddp-show.
 * Returns 0, or -1 if an option asks for what cannot be done.
 */
int ddp_divert_output(const struct ddp_task *task, struct ddp_error *error);

#endif
