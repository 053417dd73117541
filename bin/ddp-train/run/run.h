/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-train trains a GPT, one process a rank. main.c sets a run up and loop.c
 * goes through its steps; step/trainer.h is one rank's part of a step. device.h
 * (what computes: cpu/), collective.h (what sums over ranks: mpi/) and model.h
 * (what is trained: model/) are the interfaces that can have several
 * implementations; checkpoint/ saves a run. Read main.c first.
 *
 * Here: a run on this rank, what main.c sets up, and the loop over its steps.
 */
#ifndef DDP_TRAIN_RUN_H
#define DDP_TRAIN_RUN_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"
#include "collective.h"
#include "data/data.h"
#include "run/train_options.h"
#include "run/world.h"

struct ddp_error;
struct progress;
struct saver;
struct trainer;

enum { RUN_DIVERGED = 65 };	/* exit code: would do so again */

struct run {
	struct options options, asked;	/* complete; as they were given */
	struct collective collective;
	struct data data;
	struct trainer *trainer;
	struct progress *progress;	/* rank 0's */
	struct saver *saver;		/* of checkpoints; NULL: none */
	char id[CHECKPOINT_ID];		/* of this run, for its files */
	char learned[96];		/* which data, described */
	char data_sum[CHECKPOINT_SUM];	/* for checkpoints, of all its bytes */
	char gpu[64];			/* this rank's, by model; "": none */
	bool stopped;			/* before the last step, as a signal
					   asked for; saved, if any was done */
	bool diverged;			/* failed for its own numbers */
	char (*hosts)[WORLD_CELL];	/* of all ranks */
	double begun, opened;		/* moments */
	bool quiet;			/* another process prints the error */
};

/* plan.c: the model's FLOP of a step, of all ranks; 0 of the toy. */
double run_count_flops(const struct options *options);

/*
 * Tell rank 0's progress what all GPUs can do, and how long a step should take
 * on the slowest; or print that a GPU is not known. Collective.
 */
void run_expect_rates(struct run *run);

/* Print memory, buckets and slices; and a step on a GPU, if that is known. */
void run_print_plan(const struct run *run);

/*
 * Train all steps; collective. Returns 0, or -1 on every rank with the same
 * error set. If only this rank fails, ends all of them.
 */
int run_train(struct run *run, struct ddp_error *error);

#endif
