/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_TRAIN_CLOCK_H
#define DDP_TRAIN_CLOCK_H

#include "layout/clock.h"

/* Seconds since some moment, never backwards. */
static inline double clock_seconds(void)
{
	return ddp_clock_seconds();
}

#endif
