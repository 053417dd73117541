/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor's clock: nanoseconds of CLOCK_MONOTONIC, as the wire has. */
#ifndef DDP_SUPERVISOR_NOW_H
#define DDP_SUPERVISOR_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t ddp_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t ms(int64_t count)
{
	return count * 1000000;
}

#endif
