/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank of a preflight moves: through its GPU, to other nodes, and in an
 * all-reduce. All of it runs in one thread, as MPI and NCCL want: it can hang
 * with the network, while the rank itself must go on and tell.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/thread.h"
#include "outliers.h"
#include "player.h"
#include "preflight.h"

enum {
	STAGE = 1 << 20,	/* bytes of struct bench's stage */
	WARM_UP = 64,		/* of them go to the GPU; see wake_link */
	BYTES_NCCL = 4 << 20,	/* of an exchange: 0.3 ms at 100 Gbit/s */
	BYTES_MPI = 256 << 10,	/* 2 ms at 1 Gbit/s */
	CALLS = 5		/* of a match that are timed, if time allows */
};

/* moved is read while the thread may still be in it, which then hangs. */
struct mover {
	struct ddp_worker *worker;
	struct world *world;
	struct options options;
	struct player player;
	double calls[CALLS];
	void *memory;
	bool connected;
	struct probe probe;
	struct moved moved;
};

/* What the thread is asked for; it frees this if it comes too late. */
struct order {
	struct mover *mover;
	void (*work)(struct mover *mover);
};

static void obey(void *state)
{
	const struct order *order = state;

	order->work(order->mover);
}

static int run(struct mover *mover, void (*work)(struct mover *mover),
	       int64_t deadline)
{
	struct order *order = malloc(sizeof(*order));
	int result;

	if (!order)
		return -1;
	*order = (struct order){ mover, work };
	result = ddp_worker_run(mover->worker, obey, order, deadline);
	if (result == 0)
		free(order);
	return result;
}

struct mover *mover_create(struct world *world, const struct options *options)
{
	struct mover *mover = calloc(1, sizeof(*mover));

	if (!mover)
		return NULL;
	mover->world = world;
	mover->options = *options;
	mover->options.min_bytes = world->backend == &backend_nccl ?
		BYTES_NCCL : BYTES_MPI;
	mover->options.iters = CALLS;
	mover->options.warmup_iters = 0;
	mover->options.check = 1;
	mover->worker = ddp_worker_create();
	if (mover->worker)
		return mover;
	free(mover);
	return NULL;
}

/* ---- the device */

/*
 * An idle GPU lowers the speed of its link, and raises it to copy: so copy for
 * a while, compare what came back, and then read the link.
 */
static void wake_link(struct mover *mover, size_t size)
{
	const struct backend *backend = mover->world->backend;
	struct player *player = &mover->player;
	struct bench *bench = &player->bench;

	pattern_make(&bench->pattern, UINT8, MAX, 0, 0, 1, 1);
	bench_fill(bench, bench->send, size);
	if (bench_wrong(bench, bench->send, 0, size) > 0)
		snprintf(mover->probe.gpu_error, FACT_TEXT,
			 "what is read from its memory is not what was "
			 "written; look for 'Xid' in dmesg");
	for (int i = 0; i < WARM_UP; i++)
		backend->put(bench->send, bench->stage, STAGE);
	link_read(&mover->probe);
}

static void prepare(struct mover *mover)
{
	const struct backend *backend = mover->world->backend;
	const struct member *own = &mover->world->members[mover->world->rank];
	struct player *player = &mover->player;
	size_t size = (size_t)mover->options.min_bytes;
	struct ddp_error error = { 0 };
	char device[48] = "";

	player->bench.world = mover->world;
	player->bench.options = &mover->options;
	player->calls = mover->calls;
	player->limit_s = 0.1;
	player->bench.stage = calloc(1, STAGE);
	if (!player->bench.stage ||
	    backend->prepare(own->local_rank,
			     world_node_size(mover->world, own->node),
			     mover->options.share_gpu, device, sizeof(device),
			     &error) < 0 ||
	    !(mover->memory = backend->reserve(2 * size, &error))) {
		snprintf(mover->probe.gpu_error, FACT_TEXT, "%.150s",
			 error.code ? error.text : "out of memory");
		return;
	}
	player->bench.send = player->bench.memory = mover->memory;
	player->bench.receive = player->bench.memory + size;
	if (backend != &backend_nccl)
		return;
	sscanf(device, "%31s", mover->probe.bus_id);
	wake_link(mover, size);
}

int mover_prepare(struct mover *mover, struct probe *probe, int64_t deadline)
{
	int result;

	mover->probe = *probe;
	result = run(mover, prepare, deadline);
	if (result == 0)
		*probe = mover->probe;
	else
		snprintf(probe->gpu_error, FACT_TEXT, "it does not answer; "
			 "look for 'Xid' in dmesg");
	return result;
}

/* ---- matches */

static void connect(struct mover *mover)
{
	const struct world *world = mover->world;
	struct ddp_error error = { 0 };
	int rank = world->rank, size = world->size;

	if (world->backend == &backend_mpi &&
	    world->backend->open(&rank, &size, &error) == 0 &&
	    (rank != world->rank || size != world->size))
		ddp_error_set(&error, DDP_ERROR_SYSTEM, "MPI's rank %d of %d "
			      "is rank %d of %d in PMIx", rank, size,
			      world->rank, world->size);
	if (error.code == DDP_ERROR_NONE)
		world->backend->connect(&error);
	if (error.code != DDP_ERROR_NONE)
		snprintf(mover->moved.error, FACT_TEXT, "%.150s", error.text);
}

/* Without a barrier between the rounds: one bad pair holds up as few as it can,
 * so that who is in the first match that does not end tells the bad pair. */
static void play(struct mover *mover)
{
	const struct world *world = mover->world;
	int own = world->members[world->rank].node;
	int nodes = world->node_count;
	int rounds = nodes % 2 == 0 ? nodes - 1 : nodes;
	struct result result;

	mover->moved = (struct moved){ 0 };
	if (!mover->connected)
		connect(mover);
	if (mover->moved.error[0] != '\0')
		return;
	mover->connected = true;
	for (int round = 0; round < rounds && round < ROUNDS; round++) {
		player_play(&mover->player, pair_partner(own, round, nodes),
			    &result);
		mover->moved.seconds[round] = result.seconds;
		mover->moved.wrong += result.wrong;
		mover->moved.matches++;
	}
	mover->moved.matches = ROUNDS;
}

/* ---- the all-reduce */

static void sum(struct mover *mover)
{
	struct world *world = mover->world;
	struct bench *bench = &mover->player.bench;
	const struct backend *backend = world->backend;
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
	backend->run(&call);
	backend->wait();
	pattern_make(&bench->pattern, FLOAT, SUM, 0, world->size - 1,
		     world->size, 1);
	mover->moved.wrong_sum = bench_wrong(bench, bench->receive, 0,
					     call.count);
}

static int run_moved(struct mover *mover, void (*work)(struct mover *mover),
		     struct moved *moved, int64_t deadline)
{
	int result = run(mover, work, deadline);

	*moved = mover->moved;
	moved->ended = result == 0;
	return result;
}

int mover_play(struct mover *mover, struct moved *moved, int64_t deadline)
{
	return run_moved(mover, play, moved, deadline);
}

int mover_sum(struct mover *mover, struct moved *moved, int64_t deadline)
{
	return run_moved(mover, sum, moved, deadline);
}

static void close_all(struct mover *mover)
{
	const struct backend *backend = mover->world->backend;

	if (mover->memory)
		backend->release(mover->memory);
	free(mover->player.bench.stage);
	backend->close();
}

int mover_close(struct mover *mover, int64_t deadline)
{
	if (run(mover, close_all, deadline) < 0)
		return -1;
	ddp_worker_destroy(mover->worker);
	free(mover);
	return 0;
}
