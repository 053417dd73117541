/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor's times: nanoseconds of ddp_clock_ns, as the wire has them. */
#ifndef DDP_SUPERVISOR_NOW_H
#define DDP_SUPERVISOR_NOW_H

#include <stdint.h>

#include "util/clock.h"

static inline int64_t ms(int64_t count)
{
	return count * 1000000;
}

#endif
