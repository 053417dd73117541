/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures every pair of nodes, in a tournament. */
#include "pairs.h"
#include "util/clock.h"

#include <stdlib.h>

#include "bench.h"
#include "outliers.h"
#include "pairs_print.h"

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

static void exchange(struct tournament *t)
{
	const struct bench *bench = &t->bench;

	bench->world->backend->exchange(t->peer, bench->send, bench->receive,
					bench->options->min_bytes);
	bench->world->backend->wait();
}

static double time_exchanges(struct tournament *t)
{
	const struct options *options = t->bench.options;
	size_t count = (size_t)options->iters;

	for (uint64_t i = 0; i < options->warmup_iters + 1; i++)
		exchange(t);
	for (size_t i = 0; i < count; i++) {
		double begin = ddp_clock_seconds();

		exchange(t);
		t->calls[i] = ddp_clock_seconds() - begin;
	}
	return median(t->calls, count);
}

static uint64_t check_exchange(struct tournament *t)
{
	struct bench *bench = &t->bench;
	size_t count = (size_t)bench->options->min_bytes;
	int rank = bench->world->rank, size = bench->world->size;

	pattern_make(&bench->pattern, UINT8, MAX, rank, rank, size, 1);
	bench_fill(bench, bench->send, count);
	bench_clear(bench, bench->receive, count);
	exchange(t);
	pattern_make(&bench->pattern, UINT8, MAX, t->peer, t->peer, size, 1);
	return bench_wrong(bench, bench->receive, 0, count);
}

/* Collective: all ranks play their matches, of disjoint nodes, at once. */
static void play(struct tournament *t, int partner, struct result *result)
{
	struct world *world = t->bench.world;

	*result = (struct result){ 0 };
	t->peer = world_find_peer(world, partner);
	world->backend->barrier();
	if (t->peer < 0)
		return;
	result->seconds = time_exchanges(t);
	for (uint64_t i = 0; i < t->bench.options->check; i++)
		result->wrong += check_exchange(t);
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

int pairs_run(struct world *world, const struct options *options, bool *bad,
	      struct ddp_error *error)
{
	size_t nodes = (size_t)world->node_count, size = options->min_bytes;
	struct pairs pairs = { 0 };
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
		pairs_print(world, options, &pairs);
	*bad = pairs.wrong_sum > 0 || pairs.slow.node_count > 0 ||
		pairs.slow.pair_count > 0;
	outliers_clear(&pairs.slow);
	free(pairs.times);
	free(pairs.wrong);
	bench_close(&bench);
	return 0;
}
