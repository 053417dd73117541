/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many ranks, and of many nodes, in one line. */
#ifndef DDP_VERDICT_NAMES_H
#define DDP_VERDICT_NAMES_H

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

/*
 * Adds nodes as Slurm shortens them, "n[2-4,7],login"; of more than 16 ranges
 * " and 5 more". Sorts names, which are different from each other.
 */
void ddp_nodes_add(struct ddp_text *text, const char **names, uint32_t count);

#endif
