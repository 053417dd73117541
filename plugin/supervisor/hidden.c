/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures that no agent tells of. srun does, one after the other, until it ends
 * the step for them: what it says after that may come of the end. Where ranks
 * have called MPI_Abort it says nothing before.
 */
#define _GNU_SOURCE
#include "supervisor/hidden.h"

#include <stdlib.h>
#include <string.h>

#include "layout/ranks.h"

#define UNKNOWN "slurm-ddp: which rank failed first is not known: "

/* Whether its agent, which has told of this rank's start, owes its end. */
static bool is_owed(const struct ddp_step *step, unsigned long rank)
{
	return rank < step->world_size && step->ranks[rank].known &&
	       !step->ranks[rank].ended;
}

/* The first rank of "3,0-1," that is owed, if that comes before this one. */
static bool find_owed(const struct ddp_step *step, const char *list,
		      uint32_t before, uint32_t *owed)
{
	unsigned long rank, last;
	char *end;

	for (; *list; list = end + (*end == ',')) {
		rank = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == list)
			return false;
		for (; rank <= last && rank < step->world_size; rank++) {
			if (rank == before)
				return false;
			*owed = (uint32_t)rank;
			if (is_owed(step, rank))
				return true;
		}
	}
	return false;
}

/* One whose agent may yet tell of an end: so not one that is lost. */
static const struct ddp_step_node *find_silent(const struct ddp_step *step)
{
	const struct ddp_step_node *node;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		node = &step->nodes[step->ranks[i].node];
		if (is_owed(step, i) && node->silent && !node->lost)
			return node;
	}
	return NULL;
}

bool ddp_hidden_is_clear(const struct ddp_attempt *attempt)
{
	bool needs = !attempt->ended_by_user &&
		     ddp_verdict_needs_srun(&attempt->step);

	return (!find_silent(&attempt->step) && !needs) ||
	       attempt->child.ended || attempt->relay.in < 0 ||
	       attempt->relay.sieve.ends != DDP_SIEVE_GOES_ON;
}

/*
 * If others end the step, a rank can have failed by that, and so can all that
 * srun names later. The node tells the rank from that of a step which a rank has
 * started, or of another component.
 */
void ddp_hidden_confirm(struct ddp_attempt *attempt)
{
	const struct ddp_sieve *sieve = &attempt->relay.sieve;
	struct ddp_step *step = &attempt->step;
	bool says = sieve->first && !sieve->failed.failed &&
		    sieve->ends != DDP_SIEVE_OTHERS;
	char *list = says ? strndup(sieve->failed.data, sieve->first - 1) : NULL;
	struct ddp_step_rank *rank;
	uint32_t i;

	says = list && ddp_ranks_check("srun", list, 0, NULL) == 0;
	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		rank->confirmed = says && rank->known &&
			strcmp(step->nodes[rank->node].name,
			       sieve->first_node) == 0 &&
			ddp_ranks_has(list, i);
	}
	free(list);
}

bool ddp_hidden_add_named(const struct ddp_attempt *attempt,
			  struct ddp_text *text)
{
	const struct ddp_sieve *sieve = &attempt->relay.sieve;
	unsigned long rank;

	if (sieve->ends != DDP_SIEVE_SRUN || sieve->failed.length == 0)
		return false;
	rank = strtoul(sieve->failed.data, NULL, 10);
	if (!is_owed(&attempt->step, rank))
		return false;
	ddp_text_add(text, UNKNOWN "srun says that rank %lu had failed, and no "
		     "ddp-agent tells of it\n", rank);
	return true;
}

bool ddp_hidden_find(const struct ddp_attempt *attempt,
		     const struct ddp_verdict *verdict, struct ddp_text *text)
{
	const struct ddp_sieve *sieve = &attempt->relay.sieve;
	const struct ddp_step *step = &attempt->step;
	const struct ddp_step_node *silent = find_silent(step);
	size_t length = sieve->ends == DDP_SIEVE_SRUN ? sieve->reason :
			sieve->failed.length;
	uint32_t owed;
	char *list;
	bool hidden;

	if (verdict->kind != DDP_VERDICT_RANK ||
	    ddp_verdict_is_own(verdict, step) || sieve->failed.failed)
		return false;
	if (sieve->ends == DDP_SIEVE_OTHERS) {
		if (silent)
			ddp_text_add_quoted(text, UNKNOWN "the ddp-agent of "
					    "node %s had stopped to answer",
					    silent->name);
		ddp_text_add(text, silent ? "\n" : "");
		return silent != NULL;
	}
	list = strndup(length ? sieve->failed.data : "", length);
	hidden = list && find_owed(step, list, verdict->rank, &owed);
	free(list);
	if (hidden)
		ddp_text_add_quoted(text, UNKNOWN "srun says that rank %u had "
				    "failed, and the ddp-agent of %s does not "
				    "tell of it", owed,
				    step->nodes[step->ranks[owed].node].name);
	ddp_text_add(text, hidden ? "\n" : "");
	return hidden;
}
