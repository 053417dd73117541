/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_WATCH_WHO_H
#define DDP_WATCH_WHO_H

#include <stdbool.h>

#include "layout/text.h"
#include "watch/step.h"

/* Whether a rank is to be named. */
typedef bool ddp_who_is(const struct ddp_step *step, uint32_t rank,
			  const void *context);

/*
 * Name all ranks that are: "rank 3", "ranks 0-2,5", "ranks 0,2,4 and 12 more".
 * Returns how many there are.
 */
uint32_t ddp_who_add(struct ddp_text *text, const struct ddp_step *step,
		       ddp_who_is *is, const void *context);

#endif
