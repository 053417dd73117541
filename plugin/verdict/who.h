/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_VERDICT_WHO_H
#define DDP_VERDICT_WHO_H

#include <stdbool.h>

#include "util/text.h"
#include "verdict/step.h"

/* "rank"; "torchrun task" where the tasks of a step are launchers. */
void ddp_who_add_word(struct ddp_text *text, const struct ddp_step *step);

/*
 * torchrun ends with a summary of the cause: it tells the rank, of its own world,
 * and when that failed, in local time.
 */
struct ddp_who_cause {
	uint32_t rank;
	char time[32];		/* "2026-11-28_16:58:42" */
};

/* Find it in a tail. Returns false where there is no summary, or no launcher. */
bool ddp_who_find_cause(const struct ddp_step *step, const char *tail,
			struct ddp_who_cause *cause);

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
