/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks met and moved: the master, clocks, links, slow nodes. */
#include <math.h>
#include <stdlib.h>

#include "outliers.h"
#include "verdict.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * What most clocks say: the median; between two, the one that is nearer to rank
 * 0's, which is 0. NAN: memory is short, or no clock is known.
 */
static double find_clock(const struct world *world, const struct probe *all)
{
	size_t size = (size_t)world->size, count = 0;
	double *known = malloc(size * sizeof(*known));
	double clock = NAN;

	for (int rank = 0; rank < world->size && known; rank++)
		if (all[rank].clock_error_s >= 0)
			known[count++] = all[rank].clock_s;
	if (count > 0) {
		double low, high;

		qsort(known, count, sizeof(*known), compare);
		low = known[(count - 1) / 2];
		high = known[count / 2];
		clock = fabs(low) <= fabs(high) ? low : high;
	}
	free(known);
	return clock;
}

static void judge_clocks(struct verdict *verdict, const struct world *world,
			 const struct probe *all)
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

/* Of GPUs that could be as fast as this rank's, the link that most have; where
 * several are as common, the fastest. */
static struct link find_link(const struct world *world,
			     const struct probe *all, int rank, int *count)
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
			const struct probe *all)
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

void verdict_probes(struct verdict *verdict, const struct world *world,
		    const struct probe *all)
{
	for (int rank = 0; rank < world->size; rank++) {
		int node = world->members[rank].node;

		if (all[rank].master_error[0] != '\0')
			verdict_add(verdict, node, "master", "%s",
				    all[rank].master_error);
		if (all[rank].gpu_error[0] != '\0')
			verdict_add(verdict, node, "gpu", "the GPU of rank %d "
				    "does not work: %s", rank,
				    all[rank].gpu_error);
	}
	judge_clocks(verdict, world, all);
	judge_links(verdict, world, all);
}

/* ---- matches */

/* The first match that some rank has not ended holds up all later ones. */
static uint32_t find_stuck(const struct world *world, const struct moved *all)
{
	uint32_t least = ROUNDS;

	for (int rank = 0; rank < world->size; rank++)
		if (all[rank].matches < least)
			least = all[rank].matches;
	return least;
}

static const char *host_of(const struct world *world, int node)
{
	int rank = 0;

	while (world->members[rank].node != node)
		rank++;
	return world->members[rank].host;
}

static void judge_stuck(struct verdict *verdict, const struct world *world,
			const struct moved *all, int rank)
{
	int node = world->members[rank].node, partner;

	partner = pair_partner(node, (int)all[rank].matches,
			       world->node_count);
	verdict_add(verdict, node, "transfer", "rank %d does not get through "
		    "its exchange with %s: one of the two nodes does not pass "
		    "messages; test the network between them", rank,
		    host_of(world, partner));
}

void verdict_matches(struct verdict *verdict, const struct world *world,
		     const struct moved *all)
{
	uint32_t stuck = find_stuck(world, all);
	int count = 0;

	for (int rank = 0; rank < world->size; rank++)
		count += all[rank].error[0] == '\0' &&
			all[rank].matches == stuck;
	if (stuck < ROUNDS && verdict_is_common(world, count)) {
		verdict_add(verdict, -1, "transfer", "%d of %d ranks did not "
			    "get through their exchanges in time: all nodes "
			    "are busy, or apart; try a larger --limit", count,
			    world->size);
		stuck = ROUNDS;
	}
	for (int rank = 0; rank < world->size; rank++) {
		int node = world->members[rank].node;

		if (all[rank].error[0] != '\0')
			verdict_add(verdict, node, "transfer", "rank %d cannot "
				    "begin to exchange: %s", rank,
				    all[rank].error);
		else if (stuck < ROUNDS && all[rank].matches == stuck)
			judge_stuck(verdict, world, all, rank);
		if (all[rank].wrong > 0)
			verdict_add(verdict, node, "data", "rank %d got wrong "
				    "bytes from another node: one of the two "
				    "spoils data; ddp-bench --pairs tells "
				    "which", rank);
	}
}

void verdict_sums(struct verdict *verdict, const struct world *world,
		  const struct moved *all)
{
	int wrong = 0, stuck = 0;

	for (int rank = 0; rank < world->size; rank++) {
		wrong += all[rank].wrong_sum > 0;
		stuck += !all[rank].ended;
	}
	if (wrong == world->size || stuck == world->size) {
		verdict_add(verdict, -1, "sum", "the all-reduce %s rank, so "
			    "it does not tell which node is bad: run ddp-bench "
			    "on parts of the nodes", stuck > 0 ?
			    "has ended on no" : "has a wrong sum on every");
		return;
	}
	for (int rank = 0; rank < world->size; rank++) {
		int node = world->members[rank].node;

		if (!all[rank].ended)
			verdict_add(verdict, node, "sum", "rank %d does not "
				    "get through the all-reduce: test the "
				    "network to this node", rank);
		else if (all[rank].wrong_sum > 0)
			verdict_add(verdict, node, "sum", "the all-reduce's "
				    "sum is wrong on rank %d: its GPU, memory "
				    "or network spoils data; leave the node "
				    "out", rank);
	}
}

/* A match took as long as its slowest rank. */
static double match_seconds(const struct world *world, const struct moved *all,
			    int a, int b, int round)
{
	double seconds = 0;

	for (int rank = 0; rank < world->size; rank++) {
		int node = world->members[rank].node;

		if ((node == a || node == b) &&
		    all[rank].seconds[round] > seconds)
			seconds = all[rank].seconds[round];
	}
	return seconds;
}

void verdict_times(const struct world *world, const struct moved *all,
		   double *times)
{
	int nodes = world->node_count;

	for (int node = 0; node < nodes; node++) {
		times[node] = 0;
		for (int round = 0; round < ROUNDS; round++) {
			double seconds = match_seconds(world, all, node,
				pair_partner(node, round, nodes), round);

			if (seconds > 0 &&
			    (times[node] == 0 || seconds < times[node]))
				times[node] = seconds;
		}
	}
}

int verdict_find_slow(const double *times, int nodes, bool *slow,
		      double *median)
{
	double *work = calloc((size_t)nodes, sizeof(*work));
	struct bounds bounds;
	int count = 0;

	if (!work)
		return -1;
	bounds = outliers_bounds(times, (size_t)nodes, work);
	free(work);
	*median = bounds.median;
	for (int node = 0; node < nodes; node++) {
		slow[node] = nodes > 2 && times[node] > bounds.above &&
			times[node] > SLOW_RATIO * bounds.median &&
			times[node] > SLOW_MORE_S + bounds.median;
		count += slow[node];
	}
	return count;
}
