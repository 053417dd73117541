/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_REPORT_H
#define DDP_SUPERVISOR_REPORT_H

#include <time.h>

#include "layout/error.h"
#include "supervisor/attempt.h"

/* Whether a file of this name can be written; -1 with an error. */
int ddp_report_check(const char *path, struct ddp_error *error);

/* Write the report of an attempt, all at once, over what was there before. */
int ddp_report_write(const char *path, const struct ddp_attempt *attempt,
		     time_t start, int exit_code, struct ddp_error *error);

#endif
