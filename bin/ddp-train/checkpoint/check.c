/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks read a checkpoint together: each checks some of its shards, and then
 * loads what it updates. So they read the data that it has learned.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/load.h"
#include "checkpoint/manifest.h"
#include "collective.h"
#include "data/data.h"
#include "ddp.h"
#include "run/world.h"
#include "step/trainer.h"
#include "util/clock.h"
#include "util/error.h"

enum { DATA_PIECE = 16 << 20 };	/* bytes of the data between two pauses */

/* The record that each rank sends to all others. */
struct round {
	uint64_t step;
	uint64_t sum;			/* of its part of the data */
	bool resumes, done;
};

struct check {
	struct collective *collective;
	struct round mine, *all;
	double met;			/* the moment of the last round */
};

static void meet(struct check *check)
{
	struct collective *collective = check->collective;

	collective->table->agree(collective, &check->mine, check->all,
				 sizeof(check->mine));
	check->met = ddp_clock_seconds();
}

/*
 * Meets the other ranks each second, so that those that have read do not miss
 * one that reads.
 */
static void pause_check(void *context)
{
	struct check *check = context;

	if (ddp_clock_seconds() - check->met < 1)
		return;
	meet(check);
	ddp_heartbeat();
}

/* Returns true if all ranks go on from the same step. */
static bool is_common(const struct check *check)
{
	const struct round *all = check->all;
	bool common = all[0].resumes;

	for (int rank = 1; rank < check->collective->size; rank++)
		common = common && all[rank].resumes &&
			 all[rank].step == all[0].step;
	return common;
}

static bool are_done(const struct check *check)
{
	bool done = true;

	for (int rank = 0; rank < check->collective->size; rank++)
		done = done && check->all[rank].done;
	return done;
}

/* Meets the ranks that still read, once this one has read its part. */
static void wait_for_others(struct check *check)
{
	check->mine.done = true;
	do {
		meet(check);
		ddp_heartbeat();
	} while (!are_done(check));
}

/*
 * Checks all shards; takes the error of the first rank that found one broken.
 */
static int check_shards(struct check *check, const struct options *options,
			struct ddp_error *error)
{
	struct collective *collective = check->collective;
	const struct load_pause pause = { pause_check, check };
	struct ddp_error mine = { 0 }, cause = { 0 };
	uint64_t step = options->from->step;

	load_check(options->checkpoint, options->from, collective->rank,
		   collective->size, &pause, &mine);
	wait_for_others(check);
	if (world_share_errors(collective, &mine, &cause) == 0)
		return 0;
	if (cause.code != DDP_ERROR_ARGUMENT)
		return load_refuse(options->checkpoint, step, &cause, error);
	if (load_pass_over(step, &cause) < 0)
		collective->table->abort(collective, "no memory to pass over "
					 "a checkpoint");
	return 1;
}

/* Ends all ranks where there is no memory, as the others wait for this one. */
static void begin(struct check *check, struct collective *collective,
		  const struct manifest *from)
{
	*check = (struct check){
		.collective = collective,
		.mine = { .step = from ? from->step : 0, .resumes = from },
		.all = calloc((size_t)collective->size, sizeof(*check->all))
	};
	if (!check->all)
		collective->table->abort(collective, "no memory to read a "
					 "checkpoint");
	meet(check);
}

int checkpoint_load(const struct options *options, struct trainer *trainer,
		    struct ddp_error *error)
{
	struct check check;
	const struct load_pause pause = { pause_check, &check };
	int result;

	begin(&check, trainer->collective, options->from);
	result = load_state(options, trainer, &pause, error);
	wait_for_others(&check);
	free(check.all);
	return result;
}

int checkpoint_check(struct collective *collective,
		     const struct options *options, struct ddp_error *error)
{
	struct check check;
	int result = 0;

	begin(&check, collective, options ? options->from : NULL);
	if (is_common(&check))
		result = check_shards(&check, options, error);
	free(check.all);
	return result;
}

void checkpoint_sum_data(struct collective *collective,
			 const struct data *data, char sum[CHECKPOINT_SUM])
{
	int size = collective->size, first;
	int pieces = (int)(data->size / DATA_PIECE) / size + 1;
	uint64_t all = 0;
	struct check check;

	begin(&check, collective, NULL);
	first = collective->rank * pieces;
	for (int i = first; i < first + pieces; i++) {
		check.mine.sum += data_sum(data, i, pieces * size);
		pause_check(&check);
	}
	wait_for_others(&check);
	for (int rank = 0; rank < size; rank++)
		all += check.all[rank].sum;
	free(check.all);
	snprintf(sum, CHECKPOINT_SUM, "%016" PRIx64, all);
}
