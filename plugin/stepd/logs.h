/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_LOGS_H
#define DDP_STEPD_LOGS_H

#include "stepd/task.h"
#include "util/error.h"

/*
 * --ddp-logs: open the file of a task's stream, "out" or "err", to append to
 * it, and make its folder where that is missing. Returns a descriptor, or -1.
 */
int ddp_logs_open(const struct ddp_task *task, const char *stream,
		  struct ddp_error *error);

/*
 * Checks for a dry run that they could be made; makes none. Returns 0, or -1.
 */
int ddp_logs_check(struct ddp_error *error);

#endif
