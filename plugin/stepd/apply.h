/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_APPLY_H
#define DDP_STEPD_APPLY_H

#include "stepd/task.h"
#include "util/error.h"

/* Bind to the CPUs, prefer the memory, set the variables. Returns 0, or -1. */
int ddp_task_apply(struct ddp_task *task, struct ddp_error *error);

#endif
