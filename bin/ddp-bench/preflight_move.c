/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker of a rank moves data: exchanges with other nodes, and an
 * all-reduce. It tells what it does, and what has come out, as it goes.
 */
#define _GNU_SOURCE
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "outliers.h"
#include "preflight.h"

enum {
	BYTES_NCCL = 16 << 20,	/* of an exchange: 13 ms at 10 Gbit/s, 1.3
				 * at 100 */
	BYTES_MPI = 2 << 20,	/* 17 ms at 1 Gbit/s, 1.7 at 10 */
	FIRST_CALLS = 2,	/* of a match, and more if time allows */
	MORE_CALLS = 4,
	ATTEMPTS = 5,		/* to be not slow */
	AGAIN_MS = 150		/* before the next one, and so much more */
};

/* The time that the further calls of a match may take. */
#define LIMIT_S 0.1

/* A time above this in two attempts, as well as slow, needs no more of them. */
#define SURE_S 0.1

struct mover {
	const struct preflight *preflight;
	int fd;				/* to tell it to */
	struct options options;
	struct world world;
	struct bench bench;
	int peer;			/* of the match; -1: none */
	struct moved moved;
};

static void tell(struct mover *mover)
{
	struct message message = preflight_message(mover->preflight,
						   MESSAGE_MOVED);

	message.moved = mover->moved;
	preflight_send(mover->fd, &message, sizeof(message));
}

static void tell_stage(struct mover *mover, enum stage stage)
{
	mover->moved.stage = stage;
	tell(mover);
}

/* ---- matches */

/*
 * The larger of both ranks' times. A rank that sends slowly may be through
 * early, as the kernel takes what it sends, and the other one then waits.
 */
static double find_longer(struct mover *mover, double seconds)
{
	const struct backend *backend = mover->world.backend;
	double other;

	backend->put(mover->bench.send, &seconds, sizeof(seconds));
	bench_exchange(&mover->bench, mover->peer, sizeof(seconds));
	backend->get(&other, mover->bench.receive, sizeof(other));
	return other > seconds ? other : seconds;
}

static double time_fastest(struct mover *mover, size_t count, double fastest)
{
	for (size_t i = 0; i < count; i++) {
		double took = bench_exchange(&mover->bench, mover->peer,
					     mover->options.min_bytes);

		fastest = took < fastest ? took : fastest;
	}
	return fastest;
}

/* The fastest of some calls, as many on both ranks. */
static double time_exchanges(struct mover *mover)
{
	double fastest = time_fastest(mover, FIRST_CALLS, HUGE_VAL);
	double seconds = find_longer(mover, fastest);
	size_t count = MORE_CALLS;

	if (seconds * MORE_CALLS > LIMIT_S)
		count = (size_t)(LIMIT_S / seconds);
	return find_longer(mover, time_fastest(mover, count, fastest));
}

static void play(struct mover *mover, int partner)
{
	struct moved *moved = &mover->moved;
	double took;

	mover->peer = world_find_peer(&mover->world, partner);
	if (mover->peer >= 0) {
		/* The first call may have to connect. */
		moved->wrong += bench_check_exchange(&mover->bench, mover->peer,
						     mover->options.min_bytes);
		took = time_exchanges(mover);
		if (moved->seconds == 0 || took < moved->seconds)
			moved->seconds = took;
	}
	moved->matches++;
	tell(mover);
}

/*
 * The fastest exchanges of all ranks: all come to the same result. Returns
 * whether a rank could be slow, or not be: where all are held up by other
 * programs, so is the median, until all have played more often.
 */
static bool is_open(struct mover *mover, double *all, int attempt)
{
	size_t size = (size_t)mover->world.size;
	double *sorted = all + size, above;
	bool sure = attempt > 1;
	int count = 0;

	/* Nobody can tell which of two nodes is slow. */
	if (mover->world.node_count < 3)
		return false;
	mover->world.backend->gather(&mover->moved.seconds, all,
				     sizeof(*all));
	memcpy(sorted, all, size * sizeof(*all));
	above = verdict_find_slow(sorted, size, &mover->moved.common);
	for (size_t rank = 0; rank < size; rank++) {
		count += all[rank] > above / 2;
		sure &= all[rank] <= above / 2 ||
			(all[rank] > above && all[rank] > SURE_S);
	}
	mover->moved.slow = mover->moved.seconds > above;
	return count > 0 && !sure;
}

/*
 * There is no barrier between the rounds: one bad pair holds up as few as it
 * can, so that who is in the first match that does not end tells the bad pair.
 * If a rank may be slow, all play again: of each the fastest exchange counts.
 */
static void play_all(struct mover *mover, double *all)
{
	const struct world *world = &mover->world;
	int own = world->members[world->rank].node;
	int nodes = world->node_count;
	int rounds = nodes % 2 == 0 ? nodes - 1 : nodes;

	for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
		for (int round = 0; round < ROUNDS; round++)
			play(mover, round < rounds && nodes > 1 ?
			     pair_partner(own, round, nodes) : own);
		if (!is_open(mover, all, attempt) || attempt == ATTEMPTS)
			return;
		poll(NULL, 0, attempt * AGAIN_MS);
	}
}

/* ---- the all-reduce */

static void sum(struct mover *mover)
{
	struct bench *bench = &mover->bench;
	const struct world *world = &mover->world;
	size_t size = (size_t)mover->options.min_bytes;
	struct call call = {
		.collective = ALL_REDUCE, .type = FLOAT, .redop = SUM,
		.count = size / sizeof(float), .send = bench->send,
		.receive = bench->receive
	};

	pattern_make(&bench->pattern, FLOAT, SUM, world->rank, world->rank,
		     world->size, 1);
	bench_fill(bench, bench->send, call.count);
	bench_clear(bench, bench->receive, size);
	world->backend->run(&call);
	world->backend->wait();
	pattern_make(&bench->pattern, FLOAT, SUM, 0, world->size - 1,
		     world->size, 1);
	mover->moved.wrong_sum = bench_wrong(bench, bench->receive, 0,
					     call.count);
}

/* ---- all of it */

static int meet(struct mover *mover, struct ddp_error *error)
{
	size_t size = (size_t)mover->options.min_bytes;
	struct ddp_error mine = { 0 };

	if (world_open(&mover->world, mover->options.backend, &mine, error) < 0)
		return -1;
	if (mine.code != DDP_ERROR_NONE) {
		*error = mine;
		return -1;
	}
	return bench_open(&mover->bench, &mover->world, &mover->options, size,
			  size, error);
}

/* A rank that waits lets another one run: cores may be shared. */
void preflight_move(const struct preflight *preflight,
		    const struct backend *backend, int fd)
{
	struct mover mover = {
		.preflight = preflight, .fd = fd, .options = *preflight->options
	};
	struct ddp_error error = { 0 };
	double *all = NULL;
	char end;

	setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
	mover.options.backend = backend;
	mover.options.min_bytes = backend == &backend_nccl ? BYTES_NCCL :
		BYTES_MPI;
	tell_stage(&mover, STAGE_MEET);
	if (meet(&mover, &error) == 0)
		all = calloc(2 * (size_t)mover.world.size, sizeof(*all));
	if (!all) {
		snprintf(mover.moved.error, FACT_TEXT, "%.150s",
			 error.code ? error.text : "out of memory");
		tell(&mover);
		pause();
	}
	tell_stage(&mover, STAGE_MATCH);
	play_all(&mover, all);
	tell_stage(&mover, STAGE_SUM);
	sum(&mover);
	tell_stage(&mover, STAGE_DONE);
	/* Wait until all are done: to begin to end could disturb others. */
	preflight_receive(fd, &end, 1);
	bench_close(&mover.bench);
	world_close(&mover.world);
	free(all);
}
