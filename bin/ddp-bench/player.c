/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges with one rank of another node, timed and checked. */
#include "player.h"

#include "layout/clock.h"
#include "outliers.h"

/* The rank on another node with this rank's local rank; -1: none. */
static int find_peer(const struct world *world, int node)
{
	const struct member *own = &world->members[world->rank];

	if (node == own->node)
		return -1;
	for (int rank = 0; rank < world->size; rank++)
		if (world->members[rank].node == node &&
		    world->members[rank].local_rank == own->local_rank)
			return rank;
	return -1;
}

static double exchange(struct player *player, size_t size)
{
	const struct bench *bench = &player->bench;
	double begin = ddp_clock_seconds();

	bench->world->backend->exchange(player->peer, bench->send,
					bench->receive, size);
	bench->world->backend->wait();
	return ddp_clock_seconds() - begin;
}

/*
 * How many calls to time, after one that took so many seconds: both ranks tell
 * each other, as both must make the same number.
 */
static size_t count_calls(struct player *player, double seconds)
{
	const struct backend *backend = player->bench.world->backend;
	size_t most = (size_t)player->bench.options->iters, count;
	double other;

	if (player->limit_s <= 0)
		return most;
	backend->put(player->bench.send, &seconds, sizeof(seconds));
	exchange(player, sizeof(seconds));
	backend->get(&other, player->bench.receive, sizeof(other));
	if (other > seconds)
		seconds = other;
	count = seconds * (double)most <= player->limit_s ? most :
		(size_t)(player->limit_s / seconds);
	return count > 0 ? count : 1;
}

static double time_exchanges(struct player *player)
{
	const struct options *options = player->bench.options;
	double last = 0;
	size_t count;

	for (uint64_t i = 0; i < options->warmup_iters + 1; i++)
		last = exchange(player, options->min_bytes);
	count = count_calls(player, last);
	for (size_t i = 0; i < count; i++)
		player->calls[i] = exchange(player, options->min_bytes);
	return median(player->calls, count);
}

static uint64_t check_exchange(struct player *player)
{
	struct bench *bench = &player->bench;
	size_t count = (size_t)bench->options->min_bytes;
	int rank = bench->world->rank, size = bench->world->size;

	pattern_make(&bench->pattern, UINT8, MAX, rank, rank, size, 1);
	bench_fill(bench, bench->send, count);
	bench_clear(bench, bench->receive, count);
	exchange(player, count);
	pattern_make(&bench->pattern, UINT8, MAX, player->peer, player->peer,
		     size, 1);
	return bench_wrong(bench, bench->receive, 0, count);
}

void player_play(struct player *player, int node, struct result *result)
{
	*result = (struct result){ 0 };
	player->peer = find_peer(player->bench.world, node);
	if (player->peer < 0)
		return;
	result->seconds = time_exchanges(player);
	for (uint64_t i = 0; i < player->bench.options->check; i++)
		result->wrong += check_exchange(player);
}
