/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a step where no rank and no node is named. */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include <stdlib.h>

#include "verdict/who.h"

enum { AT_ONCE_NS = 500000000 };	/* Slurm kills all nodes of a step */

/* Whether all agents were killed at once; and one that has left; or NULL. */
static const struct ddp_step_node *find_left(const struct ddp_step *step,
					     bool *at_once)
{
	const struct ddp_step_node *left = NULL, *node;
	uint32_t i;

	*at_once = true;
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (!node->left || node->silent || (left &&
		    llabs(node->left_ns - left->left_ns) > AT_ONCE_NS))
			*at_once = false;
		if (node->left && (!left || node->silent))
			left = node;
	}
	return left;
}

void ddp_verdict_add_unknown(struct ddp_text *text, const struct ddp_step *step,
			     bool went_on)
{
	bool at_once;
	const struct ddp_step_node *left = find_left(step, &at_once);

	if (!left)
		return;
	ddp_text_add(text, "slurm-ddp: which rank failed first, if any, is not "
		     "known: ");
	if (at_once && !went_on) {
		ddp_text_add(text, "the whole step was killed at once, as "
			     "scancel and MPI_Abort have it done\n");
		return;
	}
	ddp_text_add_quoted(text, "the ddp-agent of node %s %s", left->name,
			    left->silent ? "had stopped to answer" :
			    "ended before its ranks did");
	ddp_text_add(text, "\n");
}

bool ddp_verdict_still_runs(const struct ddp_step *step, uint32_t rank,
			    const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	(void)context;
	return !of->ended && ddp_step_is_watched(step, rank) &&
	       !step->nodes[of->node].lost;
}

static bool has_ended(const struct ddp_step *step, uint32_t rank,
		      const void *context)
{
	return step->ranks[rank].ended == *(const bool *)context;
}

void ddp_verdict_add_early(struct ddp_text *text, const struct ddp_step *step)
{
	static const bool yes = true, no = false;
	uint32_t i, runs = 0;

	for (i = 0; i < step->world_size; i++)
		runs += ddp_verdict_still_runs(step, i, NULL);
	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add(text, step, has_ended, &yes);
	ddp_text_add(text, " ended with exit code 0 a while ago, and ");
	if (runs > 0) {
		ddp_who_add(text, step, ddp_verdict_still_runs, NULL);
		ddp_text_add(text, " still run%s", runs == 1 ? "s" : "");
	} else {
		ddp_text_add(text, "no end is known of ");
		ddp_who_add(text, step, has_ended, &no);
	}
	ddp_text_add(text, "; do they wait for each other?\n");
}

static bool is_well(const struct ddp_step *step, uint32_t rank,
		    const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return (of->ended && of->status == 0) == *(const bool *)context;
}

void ddp_verdict_add_gone(struct ddp_text *text, const struct ddp_step *step)
{
	static const bool yes = true, no = false;
	uint32_t i, well = 0;

	for (i = 0; i < step->world_size; i++)
		well += is_well(step, i, &yes);
	if (well == 0 || step->known < step->world_size ||
	    well == step->world_size)
		return;
	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add(text, step, is_well, &yes);
	ddp_text_add(text, " had ended with exit code 0 when the step was "
		     "killed; did ");
	ddp_who_add(text, step, is_well, &no);
	ddp_text_add(text, " wait?\n");
}
