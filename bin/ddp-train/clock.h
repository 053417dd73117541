/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_TRAIN_CLOCK_H
#define DDP_TRAIN_CLOCK_H

#include <time.h>

/* Seconds since some moment, never backwards. */
static inline double clock_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
