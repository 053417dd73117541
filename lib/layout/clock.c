/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock by which deadlines are kept. */
#define _POSIX_C_SOURCE 200809L
#include "layout/clock.h"

#include <time.h>

int64_t ddp_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ddp_clock_ms(void)
{
	return ddp_clock_ns() / 1000000;
}

double ddp_clock_seconds(void)
{
	return 1e-9 * (double)ddp_clock_ns();
}
