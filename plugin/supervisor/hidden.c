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

#include "layout/tasks.h"

#define UNKNOWN "slurm-ddp: which rank failed first is not known: "

/* Whether its agent, which has told of this rank's start, owes its end. */
static bool is_owed(const struct ddp_step *step, unsigned long rank)
{
	return rank < step->world_size && step->ranks[rank].known &&
	       !step->ranks[rank].ended;
}

/*
 * Returns true if srun alone tells that this rank has ended. If its agent, asked
 * later, does not, the line was printed for another step.
 */
static bool is_told(const struct ddp_attempt *attempt, unsigned long rank)
{
	return is_owed(&attempt->step, rank) &&
	       !ddp_step_denies(&attempt->step, (uint32_t)rank,
				attempt->relay.said_ns);
}

/* The first rank of "3,0-1," of that kind, if it comes before this one. */
static bool find_told(const struct ddp_attempt *attempt, const char *list,
		      uint32_t before, uint32_t *told)
{
	uint32_t world_size = attempt->step.world_size;
	unsigned long rank, last;
	char *end;

	for (; *list; list = end + (*end == ',')) {
		rank = last = strtoul(list, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == list)
			return false;
		for (; rank <= last && rank < world_size; rank++) {
			if (rank == before)
				return false;
			*told = (uint32_t)rank;
			if (is_told(attempt, rank))
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

/* Returns true if srun told of such a rank before that of the verdict. */
static bool find_hidden(const struct ddp_attempt *attempt,
			const struct ddp_verdict *verdict, uint32_t *told)
{
	const struct ddp_sieve *sieve = &attempt->relay.sieve;
	size_t length = sieve->ends == DDP_SIEVE_SRUN ? sieve->reason :
			sieve->failed.length;
	char *list;
	bool hidden;

	if (length == 0 || sieve->failed.failed)
		return false;
	list = strndup(sieve->failed.data, length);
	hidden = list && find_told(attempt, list, verdict->rank, told);
	free(list);
	return hidden;
}

/* Returns true if another rank than that of the verdict may be the first. */
static bool may_hide(const struct ddp_attempt *attempt,
		     const struct ddp_verdict *verdict)
{
	return verdict->kind == DDP_VERDICT_RANK &&
	       !ddp_verdict_is_own(verdict, &attempt->step);
}

bool ddp_hidden_is_clear(const struct ddp_attempt *attempt)
{
	struct ddp_verdict verdict = ddp_verdict_find(&attempt->step);
	bool needs = !attempt->ended_by_user &&
		     ddp_verdict_needs_srun(&attempt->step);
	uint32_t told;

	if (attempt->child.ended || attempt->relay.in < 0)
		return true;
	if (attempt->relay.sieve.ends != DDP_SIEVE_OTHERS &&
	    may_hide(attempt, &verdict) &&
	    find_hidden(attempt, &verdict, &told))
		return false;
	return (!find_silent(&attempt->step) && !needs) ||
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
	if (!is_told(attempt, rank))
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
	uint32_t told;
	bool hidden;

	if (!may_hide(attempt, verdict))
		return false;
	if (sieve->ends == DDP_SIEVE_OTHERS) {
		if (silent)
			ddp_text_add_quoted(text, UNKNOWN "the ddp-agent of "
					    "node %s had stopped to answer",
					    silent->name);
		ddp_text_add(text, silent ? "\n" : "");
		return silent != NULL;
	}
	hidden = find_hidden(attempt, verdict, &told);
	if (hidden)
		ddp_text_add_quoted(text, UNKNOWN "srun says that rank %u had "
				    "failed, and the ddp-agent of %s does not "
				    "tell of it", told,
				    step->nodes[step->ranks[told].node].name);
	ddp_text_add(text, hidden ? "\n" : "");
	return hidden;
}
