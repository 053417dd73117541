/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for what comes late. */
#define _GNU_SOURCE
#include <time.h>

#include "checkpoint/late.h"
#include "util/clock.h"

bool late_wait(struct late *late)
{
	const struct timespec tenth = { .tv_nsec = 100000000 };
	double now = ddp_clock_seconds();

	if (late->begun == 0)
		late->begun = now;
	if (now - late->begun >= LATE_SECONDS)
		return false;
	nanosleep(&tenth, NULL);
	return true;
}
