/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock by which deadlines are kept: no change of the date moves it. */
#ifndef DDP_UTIL_CLOCK_H
#define DDP_UTIL_CLOCK_H

#include <stdint.h>

#define DDP_CLOCK_NEVER INT64_MAX	/* the deadline that never passes */

/* Nanoseconds of CLOCK_MONOTONIC, and milliseconds. */
int64_t ddp_clock_ns(void);
int64_t ddp_clock_ms(void);

/* Sleep so long, but not beyond a deadline; a signal's handler ends no sleep. */
void ddp_clock_sleep(int64_t ms, int64_t deadline_ms);

/* Seconds of the same clock, to its full resolution: for measuring. */
double ddp_clock_seconds(void);

#endif
