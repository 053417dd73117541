/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock by which deadlines are kept. */
#define _POSIX_C_SOURCE 200809L
#include "util/clock.h"

#include <errno.h>
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

void ddp_clock_sleep(int64_t ms, int64_t deadline_ms)
{
	int64_t until_ms = ddp_clock_ms() + ms;
	struct timespec until;

	if (until_ms > deadline_ms)
		until_ms = deadline_ms;
	until.tv_sec = until_ms / 1000;
	until.tv_nsec = until_ms % 1000 * 1000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
	       EINTR)
		;
}

double ddp_clock_seconds(void)
{
	return 1e-9 * (double)ddp_clock_ns();
}
