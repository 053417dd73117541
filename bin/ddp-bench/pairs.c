/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures every pair of nodes: rank i of one node and rank i of the other send
 * each other as many bytes, both ways at once. In a round of a tournament each
 * node has one partner, so that all nodes are busy and none is shared. Pairs
 * that seem slow are measured again, one at a time; the shorter time counts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "outliers.h"
#include "tool/tool.h"

struct pairs {
	struct world *world;
	const struct options *options;
	double *times;		/* [pair_index], seconds */
	uint64_t *wrong;	/* [pair_index], elements */
	uint64_t wrong_sum;
	struct outliers slow;
};

/* ---- the tournament */

/* Two nodes that make a pair; the same node twice: no pair. */
struct match {
	int a, b;
};

/* A rank's result of one match. */
struct result {
	double seconds;		/* median of the calls; 0: took no part */
	uint64_t wrong;
};

struct tournament {
	struct bench bench;
	double *calls;		/* [iters] */
	int peer;		/* of this rank in the match; -1: none */
	struct result *mine;	/* [matches] */
	struct result *all;	/* [size][matches] */
};

static double time_exchanges(struct tournament *t)
{
	const struct options *options = t->bench.options;
	size_t count = (size_t)options->iters, size = options->min_bytes;

	for (uint64_t i = 0; i < options->warmup_iters + 1; i++)
		bench_exchange(&t->bench, t->peer, size);
	for (size_t i = 0; i < count; i++)
		t->calls[i] = bench_exchange(&t->bench, t->peer, size);
	return median(t->calls, count);
}

/* Collective: all ranks play their matches, of disjoint nodes, at once. */
static void play(struct tournament *t, int partner, struct result *result)
{
	const struct options *options = t->bench.options;
	struct world *world = t->bench.world;

	*result = (struct result){ 0 };
	t->peer = world_find_peer(world, partner);
	world->backend->barrier();
	if (t->peer < 0)
		return;
	result->seconds = time_exchanges(t);
	for (uint64_t i = 0; i < options->check; i++)
		result->wrong += bench_check_exchange(&t->bench, t->peer,
						      options->min_bytes);
}

/* A match took as long as its slowest rank, and has the errors of all. */
static struct result collect(const struct tournament *t, struct match match,
			     int column, int columns)
{
	const struct world *world = t->bench.world;
	struct result result = { 0 };

	for (int rank = 0; rank < world->size; rank++) {
		int node = world->members[rank].node;
		const struct result *one = &t->all[(size_t)rank *
			(size_t)columns + (size_t)column];

		if (node != match.a && node != match.b)
			continue;
		if (one->seconds > result.seconds)
			result.seconds = one->seconds;
		result.wrong += one->wrong;
	}
	return result;
}

static void keep(struct pairs *pairs, struct match match,
		 const struct result *result)
{
	size_t i = pair_index(match.a, match.b);

	if (pairs->times[i] == 0 || result->seconds < pairs->times[i])
		pairs->times[i] = result->seconds;
	pairs->wrong[i] += result->wrong;
	pairs->wrong_sum += result->wrong;
}

static void gather(struct tournament *t, int columns)
{
	t->bench.world->backend->gather(t->mine, t->all, (size_t)columns *
					sizeof(struct result));
}

static void play_rounds(struct tournament *t, struct pairs *pairs)
{
	const struct world *world = t->bench.world;
	int nodes = world->node_count;
	int own = world->members[world->rank].node;
	int rounds = nodes % 2 == 0 ? nodes - 1 : nodes;

	for (int round = 0; round < rounds; round++)
		play(t, pair_partner(own, round, nodes), &t->mine[round]);
	gather(t, rounds);
	for (int round = 0; round < rounds; round++) {
		for (int a = 0; a < nodes; a++) {
			struct match match = {
				a, pair_partner(a, round, nodes)
			};
			struct result result;

			if (match.b <= a)
				continue;
			result = collect(t, match, round, rounds);
			keep(pairs, match, &result);
		}
	}
}

static void play_alone(struct tournament *t, struct pairs *pairs,
		       struct match match)
{
	const struct world *world = t->bench.world;
	int own = world->members[world->rank].node;
	struct result result;

	play(t, own == match.a ? match.b : own == match.b ? match.a : own,
	     &t->mine[0]);
	gather(t, 1);
	result = collect(t, match, 0, 1);
	keep(pairs, match, &result);
}

/* All ranks know all times, so that all repeat the same matches. */
static void play_suspects(struct tournament *t, struct pairs *pairs)
{
	const struct outliers *slow = &pairs->slow;
	int nodes = t->bench.world->node_count;

	for (int b = 0; b < nodes; b++) {
		if (slow->nodes[b])
			play_alone(t, pairs,
				   (struct match){ b, slow->partners[b] });
		for (int a = 0; a < b; a++)
			if (slow->pairs[pair_index(a, b)])
				play_alone(t, pairs, (struct match){ a, b });
	}
}

static void find_slow(struct tournament *t, struct pairs *pairs)
{
	const struct world *world = t->bench.world;

	outliers_clear(&pairs->slow);
	if (outliers_find(&pairs->slow, pairs->times, world->node_count) < 0)
		world->backend->abort("out of memory for the pairs of nodes");
}

static void measure(struct bench *bench, struct pairs *pairs)
{
	const struct world *world = bench->world;
	size_t nodes = (size_t)world->node_count;
	struct tournament t = {
		.bench = *bench,
		.calls = calloc((size_t)bench->options->iters, sizeof(double)),
		.mine = calloc(nodes, sizeof(struct result)),
		.all = calloc((size_t)world->size * nodes,
			      sizeof(struct result))
	};

	if (!t.calls || !t.mine || !t.all || !pairs->times || !pairs->wrong)
		world->backend->abort("out of memory for the pairs of nodes");
	play_rounds(&t, pairs);
	find_slow(&t, pairs);
	play_suspects(&t, pairs);
	find_slow(&t, pairs);
	free(t.calls);
	free(t.mine);
	free(t.all);
}

/* ---- the table of all pairs, or its JSON */

/* Both nodes send at once: the bytes of one direction count. */
static double bandwidth(const struct pairs *pairs, int a, int b)
{
	return (double)pairs->options->min_bytes *
		world_pair_width(pairs->world, a, b) / 1e9 /
		pairs->times[pair_index(a, b)];
}

static void print_pair_json(const struct world *world, int a, int b)
{
	putchar('[');
	tool_print_json(stdout, world_host(world, a));
	putchar(',');
	tool_print_json(stdout, world_host(world, b));
	putchar(']');
}

static void print_pair(const struct pairs *pairs, int a, int b)
{
	const struct world *world = pairs->world;
	const struct options *options = pairs->options;
	size_t i = pair_index(a, b);
	double time = pairs->times[i], speed = bandwidth(pairs, a, b);
	bool slow = pairs->slow.nodes[a] || pairs->slow.nodes[b] ||
		pairs->slow.pairs[i];
	char wrong[32] = "N/A";

	if (options->check > 0)
		snprintf(wrong, sizeof(wrong), "%" PRIu64, pairs->wrong[i]);
	if (!options->json) {
		printf("%12s  %12s  %6d  %9.1f  %8.2f  %6s%s\n",
		       world_host(world, a), world_host(world, b),
		       world_pair_width(world, a, b), time * 1e6, speed, wrong,
		       slow ? "  slow" : "");
		return;
	}
	printf("{\"nodes\":");
	print_pair_json(world, a, b);
	printf(",\"backend\":\"%s\",\"ranks\":%d,\"size\":%" PRIu64 ",\"time\":"
	       "%.3f,\"bw\":%.6f,\"nwrong\":%s,\"slow\":%s}\n",
	       world->backend->name, world_pair_width(world, a, b),
	       options->min_bytes, time * 1e6, speed,
	       options->check > 0 ? wrong : "null", slow ? "true" : "false");
}

static void print_head(const struct pairs *pairs)
{
	bench_print_world(pairs->world);
	printf("# pairs of nodes: rank i of each sends %" PRIu64 " bytes to "
	       "rank i of the other, both ways at once; median of %" PRIu64
	       "\n", pairs->options->min_bytes, pairs->options->iters);
	printf("# %10s  %12s  %6s  %9s  %8s  %6s\n", "node", "node", "ranks",
	       "time", "bw", "#wrong");
	printf("# %10s  %12s  %6s  %9s  %8s  %6s\n", "", "", "", "(us)",
	       "(GB/s)", "");
}

static void print_slow(const struct pairs *pairs)
{
	const struct world *world = pairs->world;
	const struct outliers *slow = &pairs->slow;
	const struct bounds *bounds = &slow->node_bounds;
	int nodes = world->node_count;

	printf("# fastest pair of each node: median %.1f us, MAD %.1f us; "
	       "above %.1f us is slow\n", bounds->median * 1e6,
	       bounds->mad * 1e6, bounds->above * 1e6);
	printf("# pair / slower node's fastest pair: median %.2f, MAD %.2f; "
	       "above %.2f is slow\n", slow->pair_bounds.median,
	       slow->pair_bounds.mad, slow->pair_bounds.above);
	for (int a = 0; a < nodes; a++)
		if (slow->nodes[a])
			printf("# slow node: %s, whose fastest pair, with %s, "
			       "takes %.1f us, %.1f times the median\n",
			       world_host(world, a),
			       world_host(world, slow->partners[a]),
			       slow->node_times[a] * 1e6,
			       slow->node_times[a] / bounds->median);
	for (int b = 1; b < nodes; b++)
		for (int a = 0; a < b; a++)
			if (slow->pairs[pair_index(a, b)])
				printf("# slow pair: %s and %s take %.1f us, "
				       "others of theirs do not\n",
				       world_host(world, a),
				       world_host(world, b),
				       pairs->times[pair_index(a, b)] * 1e6);
	if (nodes == 2)
		printf("# two nodes are one pair: there is nothing to compare "
		       "it with\n");
	else if (slow->node_count == 0 && slow->pair_count == 0)
		printf("# no node and no pair is slow\n");
}

static void print_json_slow(const struct pairs *pairs)
{
	const struct world *world = pairs->world;
	const struct outliers *slow = &pairs->slow;
	const struct bounds *node = &slow->node_bounds;
	const struct bounds *pair = &slow->pair_bounds;
	int nodes = world->node_count;
	const char *comma = "";

	printf("{\"node_median\":%.3f,\"node_mad\":%.3f,\"node_above\":%.3f,"
	       "\"ratio_median\":%.4f,\"ratio_mad\":%.4f,\"ratio_above\":%.4f,"
	       "\"slow_nodes\":[", node->median * 1e6, node->mad * 1e6,
	       node->above * 1e6, pair->median, pair->mad, pair->above);
	for (int a = 0; a < nodes; a++) {
		if (!slow->nodes[a])
			continue;
		printf("%s", comma);
		tool_print_json(stdout, world_host(world, a));
		comma = ",";
	}
	printf("],\"slow_pairs\":[");
	comma = "";
	for (int b = 1; b < nodes; b++) {
		for (int a = 0; a < b; a++) {
			if (!slow->pairs[pair_index(a, b)])
				continue;
			printf("%s", comma);
			print_pair_json(world, a, b);
			comma = ",";
		}
	}
	puts("]}");
}

static void print_pairs(const struct pairs *pairs)
{
	int nodes = pairs->world->node_count;

	if (!pairs->options->json)
		print_head(pairs);
	for (int a = 0; a < nodes; a++)
		for (int b = a + 1; b < nodes; b++)
			print_pair(pairs, a, b);
	(pairs->options->json ? print_json_slow : print_slow)(pairs);
}

int pairs_run(struct world *world, const struct options *options, bool *bad,
	      struct ddp_error *error)
{
	size_t nodes = (size_t)world->node_count, size = options->min_bytes;
	struct pairs pairs = { .world = world, .options = options };
	struct bench bench;

	if (nodes < 2)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--pairs "
				     "measures pairs of nodes, and all ranks "
				     "are on %s; start it on 2 nodes or more",
				     world->members[0].host);
	if (size > world->backend->count_max)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--minbytes "
				     "is more than backend %s moves at once, "
				     "%zu bytes", world->backend->name,
				     world->backend->count_max);
	if (bench_open(&bench, world, options, size, size, error) < 0)
		return -1;
	pairs.times = calloc(nodes * (nodes - 1) / 2, sizeof(double));
	pairs.wrong = calloc(nodes * (nodes - 1) / 2, sizeof(uint64_t));
	measure(&bench, &pairs);
	if (world->rank == 0)
		print_pairs(&pairs);
	*bad = pairs.wrong_sum > 0 || pairs.slow.node_count > 0 ||
		pairs.slow.pair_count > 0;
	outliers_clear(&pairs.slow);
	free(pairs.times);
	free(pairs.wrong);
	bench_close(&bench);
	return 0;
}
