/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges what the ranks moved: who hangs in what, slow nodes, wrong data. */
#include <math.h>

#include "outliers.h"
#include "verdict.h"

static bool is_before(const struct moved *a, const struct moved *b)
{
	return a->stage < b->stage ||
	       (a->stage == b->stage && a->matches < b->matches);
}

/* Whoever has got least far holds up all others. */
static struct moved find_least(const struct world *world,
			       const struct moved *all)
{
	struct moved least = all[0];

	for (int rank = 1; rank < world->size; rank++)
		if (is_before(&all[rank], &least))
			least = all[rank];
	return least;
}

int verdict_count_last(const struct world *world, const struct moved *all)
{
	struct moved least = find_least(world, all);
	int count = 0;

	for (int rank = 0; rank < world->size; rank++)
		count += !is_before(&least, &all[rank]);
	return count;
}

static const char *host_of(const struct world *world, int node)
{
	int rank = 0;

	while (world->members[rank].node != node)
		rank++;
	return world->members[rank].host;
}

static void add_stuck(struct verdict *verdict, const struct world *world,
		      const struct moved *moved, int rank)
{
	int node = world->members[rank].node, partner;

	partner = pair_partner(node, (int)(moved->matches % ROUNDS),
			       world->node_count);
	if (moved->stage <= STAGE_MEET)
		verdict_add(verdict, node, "meet", "rank %d does not get "
			    "through MPI_Init, or NCCL's start: test the "
			    "network to this node", rank);
	else if (moved->stage == STAGE_SUM || partner == node)
		verdict_add(verdict, node, "sum", "rank %d does not get "
			    "through a collective: test the network to this "
			    "node", rank);
	else
		verdict_add(verdict, node, "transfer", "rank %d does not get "
			    "through its exchange with %s: one of the two "
			    "nodes does not pass messages; test the network "
			    "between them", rank, host_of(world, partner));
}

static void judge_stuck(struct verdict *verdict, const struct world *world,
			const struct moved *all)
{
	struct moved least = find_least(world, all);
	int count = verdict_count_last(world, all);

	if (count == world->size || verdict_is_common(world, count)) {
		verdict_add(verdict, -1, "transfer", "%d of %d ranks do not "
			    "get through %s: all nodes are busy, or apart; "
			    TRY_LONGER, count, world->size,
			    least.stage <= STAGE_MEET ?
			    "MPI_Init, or NCCL's start" :
			    least.stage == STAGE_SUM ? "the all-reduce" :
			    "their exchanges");
		return;
	}
	for (int rank = 0; rank < world->size; rank++)
		if (!is_before(&least, &all[rank]))
			add_stuck(verdict, world, &all[rank], rank);
}

static bool judge_errors(struct verdict *verdict, const struct world *world,
			 const struct moved *all)
{
	bool any = false;

	for (int rank = 0; rank < world->size; rank++) {
		if (all[rank].error[0] == '\0')
			continue;
		verdict_add(verdict, world->members[rank].node, "transfer",
			    "rank %d cannot exchange data: %s", rank,
			    all[rank].error);
		any = true;
	}
	return any;
}

static void judge_data(struct verdict *verdict, const struct world *world,
		       const struct moved *all, int rank)
{
	int node = world->members[rank].node;

	if (all[rank].wrong > 0)
		verdict_add(verdict, node, "data", "rank %d got wrong bytes "
			    "from another node: one of the two spoils data; "
			    "ddp-bench --pairs tells which", rank);
	if (all[rank].wrong_sum > 0)
		verdict_add(verdict, node, "sum", "the all-reduce's sum is "
			    "wrong on rank %d: its GPU, memory or network "
			    "spoils data; leave the node out", rank);
	if (all[rank].slow)
		verdict_add(verdict, node, "slow", "an exchange of rank %d "
			    "takes %.1f ms, for which the median of the ranks "
			    "is %.1f ms: look at the node's cable, its switch "
			    "port and what else runs there", rank,
			    all[rank].seconds * 1e3, all[rank].common * 1e3);
}

void verdict_moved(struct verdict *verdict, const struct world *world,
		   const struct moved *all)
{
	int wrong = 0;

	if (judge_errors(verdict, world, all))
		return;
	if (find_least(world, all).stage != STAGE_DONE) {
		judge_stuck(verdict, world, all);
		return;
	}
	for (int rank = 0; rank < world->size; rank++)
		wrong += all[rank].wrong_sum > 0;
	if (wrong == world->size && wrong > 1) {
		verdict_add(verdict, -1, "sum", "the all-reduce has a wrong "
			    "sum on every rank, so it does not tell which node "
			    "is bad: run ddp-bench on parts of the nodes");
		return;
	}
	for (int rank = 0; rank < world->size; rank++)
		judge_data(verdict, world, all, rank);
}

double verdict_find_slow(double *seconds, size_t count, double *median_s)
{
	size_t none = 0;
	double above;

	*median_s = median(seconds, count);
	while (none < count && seconds[none] == 0)
		none++;
	if (count - none < 3)
		return HUGE_VAL;
	*median_s = median(seconds + none, count - none);
	above = SLOW_RATIO * *median_s;
	return above > SLOW_MORE_S + *median_s ? above :
		SLOW_MORE_S + *median_s;
}
