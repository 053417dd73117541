/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What follows from srun's lines. srun tells of failed ranks one after the other,
 * until it ends the step for them: what it says after that may come of the end.
 * Where ranks have called MPI_Abort it says nothing before.
 */
#define _GNU_SOURCE
#include "verdict/said.h"

#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "verdict/facts.h"
#include "verdict/times.h"

#define UNKNOWN "slurm-ddp: which rank failed first is not known: "

void ddp_said_forget(struct ddp_said *said)
{
	said->failed.length = said->first = 0;
	said->ends = DDP_SAID_NOTHING;
	said->failed_ns = said->aborted_ns = said->last_ns = 0;
}

bool ddp_said_is_recent(int64_t said_ns, int64_t now_ns)
{
	return said_ns && now_ns - said_ns < ms(DDP_SAID_MS);
}

bool ddp_said_cancelled(const struct ddp_said *said, int64_t now_ns)
{
	return ddp_said_is_recent(said->cancelled_ns, now_ns) ||
	       ddp_said_is_recent(said->aborted_ns, now_ns);
}

/* The first bytes of the list of failed ranks, the caller's; NULL: none. */
static char *copy_failed(const struct ddp_said *said, size_t length)
{
	return length > 0 && !said->failed.failed ?
		strndup(said->failed.data, length) : NULL;
}

/* The same as a list that layout/tasks.h reads: without its last comma. */
static char *copy_list(const struct ddp_said *said, size_t length)
{
	char *list = length > 0 ? copy_failed(said, length - 1) : NULL;

	if (list && ddp_ranks_check("srun", list, 0, NULL) == 0)
		return list;
	free(list);
	return NULL;
}

/*
 * Returns true if its agent, which has told of this rank's start, owes its end.
 */
static bool is_owed(const struct ddp_step *step, unsigned long rank)
{
	return rank < step->world_size && step->ranks[rank].known &&
	       !step->ranks[rank].ended;
}

/*
 * Returns true if srun alone tells that this rank has ended. If its agent, asked
 * later, does not, the line was printed for another step.
 */
static bool is_told(const struct ddp_facts *facts, unsigned long rank)
{
	return is_owed(&facts->step, rank) &&
	       !ddp_step_denies(&facts->step, (uint32_t)rank,
				facts->said.last_ns);
}

/* The first rank of "3,0-1," of that kind, if it comes before this one. */
static bool find_told(const struct ddp_facts *facts, const char *list,
		      uint32_t before, uint32_t *told)
{
	uint32_t world_size = facts->step.world_size;
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
			if (is_told(facts, rank))
				return true;
		}
	}
	return false;
}

/* A node whose agent may yet tell of an end: so not one that is lost. */
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
static bool find_hidden(const struct ddp_facts *facts,
			const struct ddp_verdict *verdict, uint32_t *told)
{
	const struct ddp_said *said = &facts->said;
	char *list = copy_failed(said, said->ends == DDP_SAID_SRUN ?
				 said->reason : said->failed.length);
	bool hidden = list && find_told(facts, list, verdict->rank, told);

	free(list);
	return hidden;
}

/* Returns true if another rank than that of the verdict may be the first. */
static bool is_open(const struct ddp_facts *facts,
		    const struct ddp_verdict *verdict)
{
	return verdict->kind == DDP_VERDICT_RANK &&
	       !ddp_verdict_is_own(verdict, &facts->step);
}

bool ddp_said_may_follow(const struct ddp_facts *facts,
			 const struct ddp_verdict *verdict)
{
	uint32_t told;

	if (facts->ended_ns || facts->closed)
		return false;
	if (facts->said.ends != DDP_SAID_OTHERS && is_open(facts, verdict) &&
	    find_hidden(facts, verdict, &told))
		return true;
	return facts->said.ends == DDP_SAID_NOTHING &&
	       (find_silent(&facts->step) ||
		(!facts->by_user && ddp_verdict_needs_srun(&facts->step)));
}

bool ddp_said_is_reason(const struct ddp_facts *facts,
			const struct ddp_verdict *verdict)
{
	char *ranks = copy_list(&facts->said, facts->said.reason);
	bool is = ranks && ddp_verdict_is_before(verdict, &facts->step, ranks);

	free(ranks);
	return is;
}

/*
 * The node tells the rank from that of a step which a rank has started, or of
 * another component.
 */
void ddp_said_confirm(struct ddp_facts *facts)
{
	const struct ddp_said *said = &facts->said;
	struct ddp_step *step = &facts->step;
	char *list = said->ends == DDP_SAID_OTHERS ? NULL :
		     copy_list(said, said->first);
	struct ddp_step_rank *rank;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		rank->confirmed = list && rank->known &&
			strcmp(step->nodes[rank->node].name,
			       said->first_node) == 0 &&
			ddp_ranks_has(list, i);
	}
	free(list);
}

bool ddp_said_add_first(const struct ddp_facts *facts, struct ddp_text *text)
{
	const struct ddp_said *said = &facts->said;
	unsigned long rank;

	if (said->ends != DDP_SAID_SRUN || said->failed.length == 0)
		return false;
	rank = strtoul(said->failed.data, NULL, 10);
	if (!is_told(facts, rank))
		return false;
	ddp_text_add(text, UNKNOWN "srun says that rank %lu had failed, and no "
		     "ddp-agent tells of it\n", rank);
	return true;
}

bool ddp_said_hides(const struct ddp_facts *facts,
		    const struct ddp_verdict *verdict, struct ddp_text *text)
{
	const struct ddp_step *step = &facts->step;
	const struct ddp_step_node *node = NULL;
	bool others = facts->said.ends == DDP_SAID_OTHERS;
	uint32_t told = 0;

	if (!is_open(facts, verdict))
		return false;
	if (others)
		node = find_silent(step);
	else if (find_hidden(facts, verdict, &told))
		node = &step->nodes[step->ranks[told].node];
	if (!node || !text)
		return node != NULL;
	if (others)
		ddp_text_add_quoted(text, UNKNOWN "the ddp-agent of node %s had "
				    "stopped to answer", node->name);
	else
		ddp_text_add_quoted(text, UNKNOWN "srun says that rank %u had "
				    "failed, and the ddp-agent of %s does not "
				    "tell of it", told, node->name);
	ddp_text_add(text, "\n");
	return true;
}

/* Returns true if no agent tells of this rank, which failed so long ago. */
static bool is_unwatched(const struct ddp_step *step, uint32_t rank,
			 int64_t waited_ns)
{
	bool gone = step->ranks[rank].known &&
		    step->nodes[step->ranks[rank].node].left;

	return !ddp_step_is_watched(step, rank) &&
	       waited_ns >= ms(gone ? DDP_UNWATCHED_GONE_MS :
			       DDP_UNWATCHED_MS);
}

bool ddp_said_find_unwatched(const struct ddp_facts *facts, int64_t now_ns,
			     uint32_t *rank)
{
	const struct ddp_step *step = &facts->step;
	int64_t waited_ns = now_ns - facts->said.failed_ns;
	char *list = copy_list(&facts->said, facts->said.failed.length);
	bool found = false;
	uint32_t i;

	if (list && step->world_size == 0) {
		*rank = (uint32_t)strtoul(list, NULL, 10);
		found = waited_ns >= ms(DDP_UNWATCHED_MS);
	}
	for (i = 0; list && i < step->world_size && !found; i++) {
		*rank = i;
		found = ddp_ranks_has(list, i) &&
			is_unwatched(step, i, waited_ns);
	}
	free(list);
	return found;
}
