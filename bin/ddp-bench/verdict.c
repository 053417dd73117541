/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of what is wrong; what ranks have: GPUs, versions, clocks; and what
 * they moved: who hangs in what, slow nodes, wrong data.
 */
#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outliers.h"
#include "util/net.h"

void verdict_add(struct verdict *verdict, int node, const char *check,
		 const char *format, ...)
{
	struct finding *list = verdict->list;
	size_t count = verdict->count;
	va_list args;

	for (size_t i = 0; i < count; i++)
		if (list[i].node == node && strcmp(list[i].check, check) == 0)
			return;
	list = realloc(list, (count + 1) * sizeof(*list));
	if (!list) {
		verdict->failed = true;
		return;
	}
	list[count] = (struct finding){ .node = node, .check = check };
	va_start(args, format);
	vsnprintf(list[count].text, sizeof(list[count].text), format, args);
	va_end(args);
	verdict->list = list;
	verdict->count++;
}

bool verdict_is_bad(const struct verdict *verdict)
{
	return verdict->count > 0 || verdict->failed;
}

bool verdict_has(const struct verdict *verdict, int node)
{
	for (size_t i = 0; i < verdict->count; i++)
		if (verdict->list[i].node == node)
			return true;
	return false;
}

/* Returns true if so many ranks have a fault that it is no node's. */
static bool is_common(const struct world *world, int ranks)
{
	return world->node_count > 3 && 2 * ranks > world->size;
}

void verdict_absent(struct verdict *verdict, const struct world *world,
		    const bool *here, bool began)
{
	int absent = 0;

	for (int rank = 0; rank < world->size; rank++)
		absent += !here[rank];
	/* Rank 0 started the judge: only a wrong address keeps it from coming. */
	if (absent == world->size && !began) {
		verdict_add(verdict, -1, "rank", "no rank has come to the "
			    "master, not even rank 0: its address does not "
			    "lead to rank 0's node; unset MASTER_ADDR, or fix "
			    "name resolution there");
		return;
	}
	if (is_common(world, absent)) {
		verdict_add(verdict, -1, "rank", "%d of %d ranks have not "
			    "answered in time: all nodes are busy, or apart; "
			    TRY_LONGER, absent, world->size);
		return;
	}
	for (int rank = 0; rank < world->size; rank++)
		if (!here[rank])
			verdict_add(verdict, world->members[rank].node, "rank",
				    began ? "rank %d began, and answers no "
				    "more: see there what it hangs in" :
				    "rank %d has not come to the master: it "
				    "does not reach it, or hangs before "
				    "main(); see there, or leave the node out",
				    rank);
}

/* ---- what ranks have */

/* A value of some ranks, and how many have it. */
struct common {
	int rank;			/* the first that has it; -1: none */
	int count, others;		/* others: of the next common one */
};

static int count_version(const struct world *world, const struct facts *all,
			 enum version what, int rank)
{
	int count = 0;

	for (int other = 0; other < world->size; other++)
		count += strcmp(all[other].versions[what],
				all[rank].versions[what]) == 0;
	return count;
}

static bool is_first(const struct facts *all, enum version what, int rank)
{
	int other = 0;

	while (strcmp(all[other].versions[what], all[rank].versions[what]) != 0)
		other++;
	return other == rank;
}

static struct common find_common(const struct world *world,
				 const struct facts *all, enum version what)
{
	struct common common = { .rank = -1 };

	for (int rank = 0; rank < world->size; rank++) {
		int count;

		if (all[rank].versions[what][0] == '\0' ||
		    !is_first(all, what, rank))
			continue;
		count = count_version(world, all, what, rank);
		if (count > common.count) {
			common.others = common.count;
			common.count = count;
			common.rank = rank;
		} else if (count > common.others) {
			common.others = count;
		}
	}
	return common;
}

const char *verdict_version(const struct world *world, const struct facts *all,
			    enum version what)
{
	struct common common = find_common(world, all, what);

	return common.rank < 0 ? NULL : all[common.rank].versions[what];
}

static const struct {
	const char *check, *name;
} versions[VERSIONS] = {
	[DRIVER] = { "driver", "the NVIDIA driver" },
	[CUDA] = { "cuda", "the CUDA of the driver" },
	[NCCL] = { "nccl", "NCCL" },
	[LIBDDP] = { "libddp", "libddp" },
	[MPI] = { "mpi", "the MPI library" }
};

static void judge_version(struct verdict *verdict, const struct world *world,
			  const struct facts *all, enum version what)
{
	struct common common = find_common(world, all, what);
	const char *wanted;

	if (common.rank < 0)
		return;
	wanted = all[common.rank].versions[what];
	for (int rank = 0; rank < world->size; rank++) {
		const struct member *member = &world->members[rank];
		const char *had = all[rank].versions[what];

		/* A library that cannot be used was named, with the cause. */
		if (strcmp(had, wanted) == 0 ||
		    (had[0] == '\0' && all[rank].gpu_error[0] != '\0'))
			continue;
		had = had[0] != '\0' ? had : "missing";
		if (common.count > common.others)
			verdict_add(verdict, member->node, versions[what].check,
				    "%s is %s, but %s on %d of %d ranks: have "
				    "the same on all nodes",
				    versions[what].name, had, wanted,
				    common.count, world->size);
		else
			verdict_add(verdict, member->node, versions[what].check,
				    "%s is %s, but %s on %s, and neither is "
				    "the more common: have the same on all "
				    "nodes", versions[what].name, had, wanted,
				    world->members[common.rank].host);
	}
}

static void judge_gpus(struct verdict *verdict, const struct world *world,
		       const struct facts *all, int rank, bool any)
{
	const struct facts *facts = &all[rank];
	int node = world->members[rank].node;

	if (facts->gpus_given == 0 && facts->gpu_error[0] != '\0')
		verdict_add(verdict, node, "rank", "rank %d cannot tell what "
			    "it has: %s", rank, facts->gpu_error);
	else if (facts->gpus_given == 0 && facts->gpus_untried == 0 && any)
		verdict_add(verdict, node, "gpu", "the step has no GPU here, "
			    "but has some on other nodes: ask for the same on "
			    "each, as with --gres");
	else if (facts->gpus_given > 0 && facts->gpu_error[0] != '\0')
		verdict_add(verdict, node, "gpu", "the step has %u GPU%s here "
			    "and rank %d cannot use them: %s",
			    facts->gpus_given,
			    facts->gpus_given > 1 ? "s" : "", rank,
			    facts->gpu_error);
	else if (facts->gpus_seen < facts->gpus_given)
		verdict_add(verdict, node, "gpu", "the step has %u GPU%s here "
			    "and CUDA finds %u: look at nvidia-smi and for "
			    "'Xid' in dmesg", facts->gpus_given,
			    facts->gpus_given > 1 ? "s" : "",
			    facts->gpus_seen);
}

/*
 * Returns what most clocks say: the median; between two, the one that is nearer
 * to rank 0's, which is 0. NAN: memory is short, or no clock is known.
 */
static double find_clock(const struct world *world, const struct facts *all)
{
	size_t size = (size_t)world->size, count = 0;
	double *known = malloc(size * sizeof(*known));
	double clock = NAN;

	for (int rank = 0; rank < world->size && known; rank++)
		if (all[rank].clock_error_s >= 0)
			known[count++] = all[rank].clock_s;
	if (count > 0) {
		double low, high;

		median(known, count);	/* it sorts them */
		low = known[(count - 1) / 2];
		high = known[count / 2];
		clock = fabs(low) <= fabs(high) ? low : high;
	}
	free(known);
	return clock;
}

static void judge_clocks(struct verdict *verdict, const struct world *world,
			 const struct facts *all)
{
	double clock = find_clock(world, all);

	for (int rank = 0; rank < world->size; rank++) {
		double behind = all[rank].clock_s - clock;

		if (all[rank].clock_error_s < 0 ||
		    !(fabs(behind) > CLOCK_APART_S + all[rank].clock_error_s))
			continue;
		verdict_add(verdict, world->members[rank].node, "clock",
			    "its clock is %.1f s %s the others'%s: start its "
			    "time service, such as chronyd", fabs(behind),
			    behind > 0 ? "behind" : "ahead of",
			    world->node_count == 2 ? " (of two, either can be "
			    "wrong)" : "");
	}
}

static bool is_same(struct link a, struct link b)
{
	return a.speed == b.speed && a.width == b.width;
}

static uint32_t bandwidth(struct link link)
{
	return link.speed * link.width;
}

/* Returns the link that most have, of GPUs that could be as fast as this
 * rank's; where several are as common, the fastest. */
static struct link find_link(const struct world *world,
			     const struct facts *all, int rank, int *count)
{
	struct link common = { 0 };

	*count = 0;
	for (int i = 0; i < world->size; i++) {
		int same = 0;

		if (!is_same(all[i].most, all[rank].most) ||
		    bandwidth(all[i].link) == 0 ||
		    (*count > 0 && is_same(all[i].link, common)))
			continue;
		for (int j = 0; j < world->size; j++)
			same += is_same(all[j].most, all[rank].most) &&
				is_same(all[j].link, all[i].link);
		if (same > *count || (same == *count && bandwidth(common) <
				      bandwidth(all[i].link))) {
			common = all[i].link;
			*count = same;
		}
	}
	return common;
}

/* Most ranks are as the one before, and need no search. */
static void judge_links(struct verdict *verdict, const struct world *world,
			const struct facts *all)
{
	struct link common = { 0 };
	int last = -1, count = 0;

	for (int rank = 0; rank < world->size; rank++) {
		struct link link = all[rank].link;

		if (bandwidth(link) == 0)
			continue;
		if (last < 0 || !is_same(all[last].most, all[rank].most))
			common = find_link(world, all, rank, &count);
		last = rank;
		if (bandwidth(link) >= bandwidth(common))
			continue;
		verdict_add(verdict, world->members[rank].node, "link",
			    "the PCIe link of GPU %s is %.1f GT/s x%u, those "
			    "of %d other GPUs like it %.1f GT/s x%u: look for "
			    "'AER' in dmesg, and reseat the GPU",
			    all[rank].bus_id, link.speed / 10., link.width,
			    count, common.speed / 10., common.width);
	}
}

void verdict_facts(struct verdict *verdict, const struct world *world,
		   const struct facts *all)
{
	bool gpus = false;

	for (int rank = 0; rank < world->size; rank++)
		gpus |= all[rank].gpus_given > 0 || all[rank].gpus_untried > 0;
	for (int rank = 0; rank < world->size; rank++)
		judge_gpus(verdict, world, all, rank, gpus);
	for (int rank = 0; rank < world->size; rank++)
		if (all[rank].interface[0] != '\0')
			verdict_add(verdict, world->members[rank].node,
				    "interface", DDP_INTERFACE_FLAW,
				    all[rank].interface);
	for (int what = 0; what < VERSIONS; what++)
		judge_version(verdict, world, all, (enum version)what);
	judge_clocks(verdict, world, all);
	judge_links(verdict, world, all);
}

/* ---- what ranks moved */

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
			    "between them", rank, world_host(world, partner));
}

static void judge_stuck(struct verdict *verdict, const struct world *world,
			const struct moved *all)
{
	struct moved least = find_least(world, all);
	int count = verdict_count_last(world, all);

	if (count == world->size || is_common(world, count)) {
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
