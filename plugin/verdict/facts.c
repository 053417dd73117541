/* SPDX-License-Identifier: BSD-3-Clause */
/* The phases of a step, and what is true of it as a whole. */
#define _GNU_SOURCE
#include "verdict/facts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "verdict/times.h"

void ddp_facts_clear(struct ddp_facts *facts)
{
	ddp_step_clear(&facts->step);
	free(facts->said.failed.data);
	free(facts->said.unlaunched.data);
	memset(facts, 0, sizeof(*facts));
}

static void note_explanations(struct ddp_facts *facts, int64_t now_ns)
{
	const struct ddp_said *said = &facts->said;
	int64_t told_ns = facts->told_ns;

	if (said->interrupted_ns > told_ns)
		told_ns = said->interrupted_ns;
	facts->told = told_ns && now_ns - told_ns < ms(DDP_TOLD_MS);
	facts->by_user = facts->told || ddp_facts_was_killed(facts);
	facts->cancelled = ddp_said_is_recent(said->cancelled_ns, now_ns);
	facts->aborted = ddp_said_is_recent(said->aborted_ns, now_ns);
}

void ddp_facts_enter(struct ddp_facts *facts, enum ddp_phase phase,
		     int64_t now_ns)
{
	if (phase < facts->phase || facts->entered_ns[phase])
		return;
	facts->phase = phase;
	facts->entered_ns[phase] = now_ns;
}

void ddp_facts_fail(struct ddp_facts *facts, int64_t now_ns)
{
	if (facts->failed_ns)
		return;
	note_explanations(facts, now_ns);
	facts->failed_ns = now_ns;
	ddp_facts_enter(facts, DDP_PHASE_FAILING, now_ns);
}

bool ddp_facts_named(const struct ddp_facts *facts)
{
	return facts->decided_ns &&
	       (facts->verdict.kind == DDP_VERDICT_RANK ||
		facts->verdict.kind == DDP_VERDICT_NODE ||
		facts->verdict.kind == DDP_VERDICT_HANG);
}

bool ddp_facts_was_killed(const struct ddp_facts *facts)
{
	return facts->ended_ns && !facts->struck && WIFSIGNALED(facts->status);
}

int ddp_facts_srun_code(const struct ddp_facts *facts)
{
	return ddp_step_code((uint32_t)facts->status);
}

/* If tasks could not start, srun ends with 0 when those that began did. */
static bool has_unbegun(const struct ddp_facts *facts)
{
	const struct ddp_step *step = &facts->step;
	uint32_t tasks = step->world_size ? step->world_size : facts->tasks;

	return ((facts->said.launch_failed && step->world_size > 0) ||
		facts->said.given_up == tasks) && step->known < tasks;
}

int ddp_facts_code(const struct ddp_facts *facts)
{
	bool failed = facts->unwatched_ns || facts->failed_ns;
	int code = facts->struck ? ddp_step_worst(&facts->step) :
		   ddp_facts_srun_code(facts);

	if (ddp_facts_named(facts))
		return ddp_verdict_code(&facts->verdict, &facts->step);
	if (code == 0 && (facts->struck ? failed : has_unbegun(facts)))
		return 1;
	return code;
}

bool ddp_facts_all_told(const struct ddp_facts *facts)
{
	const struct ddp_step *step = &facts->step;

	return step->ended == step->world_size ||
	       (step->known == step->world_size &&
		ddp_step_count_open(step) == 0);
}

/*
 * Returns true if all ranks that nobody knows can be those of nodes on which srun
 * could not start any. Of how many there were to be, the other nodes tell.
 */
static bool is_unlaunched(const struct ddp_step *step)
{
	uint32_t i, nodes = 0, ranks = UINT32_MAX;

	for (i = 0; i < step->node_count; i++) {
		if (step->nodes[i].unlaunched)
			nodes++;
		else if (step->nodes[i].count < ranks)
			ranks = step->nodes[i].count;
	}
	return step->world_size - step->known <= (uint64_t)nodes * ranks;
}

bool ddp_facts_gone(const struct ddp_facts *facts)
{
	const struct ddp_step *step = &facts->step;
	const struct ddp_step_node *node;
	uint32_t i;

	if (ddp_step_count_open(step) > 0)
		return false;
	/* srun ends by itself when all of its tasks have. */
	if (!facts->struck)
		return true;
	for (i = 0; i < step->world_size; i++) {
		node = &step->nodes[step->ranks[i].node];
		if (step->ranks[i].known && !step->ranks[i].ended &&
		    !node->lost && !node->orphaned)
			return false;
	}
	return step->known == step->world_size || is_unlaunched(step);
}
