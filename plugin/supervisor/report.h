/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_REPORT_H
#define DDP_SUPERVISOR_REPORT_H

#include <time.h>

#include "util/error.h"
#include "verdict/facts.h"

/* Whether a file of this name can be written; -1 with an error. */
int ddp_report_check(const char *path, struct ddp_error *error);

/*
 * The report of an attempt that began at start and is over, as text, which is the
 * caller's. attempts: those of all attempts, with commas between; NULL: there is one.
 */
char *ddp_report_format(const struct ddp_facts *facts, time_t start,
			const char *attempts);

/* Write it, all at once, over what was there before. NULL: memory is short. */
int ddp_report_write(const char *path, const char *text,
		     struct ddp_error *error);

#endif
