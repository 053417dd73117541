/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many ranks in one line. */
#ifndef DDP_VERDICT_NAMES_H
#define DDP_VERDICT_NAMES_H

#include <stdbool.h>

#include "util/text.h"
#include "verdict/step.h"

/* "rank"; "torchrun task" where the tasks of a step are launchers. */
void ddp_who_add_word(struct ddp_text *text, const struct ddp_step *step);

/*
 * torchrun ends with a summary of its ranks that failed, of its own world, and when it
 * saw that. A rank that a signal has killed is the cause, and otherwise the one that
 * torchrun takes for it.
 */
struct ddp_who_cause {
	uint32_t rank;
	bool killed;		/* by another signal than torchrun's SIGTERM, or
				 * SIGABRT, by which ranks end that miss another */
	int64_t at_s;		/* in local time, since some day; 0: it lacks */
};

/* Find it in a tail. Returns false where there is no summary, or no launcher. */
bool ddp_who_find_cause(const struct ddp_step *step, const char *tail,
			struct ddp_who_cause *cause);

/* How much of a tail comes before what torchrun itself says of the failure. */
size_t ddp_who_own_part(const char *tail);

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
