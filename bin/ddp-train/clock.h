/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that times a run. */
#ifndef DDP_TRAIN_CLOCK_H
#define DDP_TRAIN_CLOCK_H

#include "layout/clock.h"

/* Seconds of CLOCK_MONOTONIC, which never goes back. */
static inline double clock_seconds(void)
{
	return ddp_clock_seconds();
}

#endif
