/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_COMMAND_H
#define DDP_STEPD_COMMAND_H

#include "stepd/task.h"
#include "util/error.h"

/*
 * Checks for a dry run that the task's command could be executed here. The
 * kernel is asked, by a process that is stopped before the command's first
 * instruction. Returns 0, also where the kernel cannot be asked or the command
 * is not known, as with --multi-prog and in a container; or -1.
 */
int ddp_command_check(const struct ddp_task *task, struct ddp_error *error);

#endif
