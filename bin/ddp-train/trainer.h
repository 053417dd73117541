/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a run: its state, and what it does in a step.
 *
 * A step takes the gradient of global_batch sequences, at positions 0, 1, ...
 * of the step; position p is the part of replica p of the sampler. Rank r of
 * n has the positions r, r + n, ..., and computes them in chunks: of --batch
 * sequences, or, where --deterministic, of a granule. Granule g of G has the
 * positions g, g + G, ..., so that rank r has granules r, r + n, ...
 */
#ifndef DDP_TRAIN_TRAINER_H
#define DDP_TRAIN_TRAINER_H

#include "bucket.h"
#include "data.h"
#include "device.h"
#include "train_options.h"
#include "sampler.h"

struct collective;
struct ddp_error;
struct model;

/* What a rank knows of its step; gathered from all. */
struct share {
	double loss;			/* its part of the mean */
	double busy;			/* seconds to the backward pass's end */
	double exposed;			/* seconds from there to the last
					   gradient reduced */
	double norm;			/* of the gradient that it sees */
	uint64_t hash;			/* of its parameters, or 0 */
};

enum { MAX_LEVELS = 32, PIECE = 1 << 18 };

struct trainer {
	const struct options *options;
	struct collective *collective;
	const struct data *data;	/* not open for toy */
	struct model *model;
	struct device device;
	struct sampler sampler;
	struct buckets buckets;
	size_t bytes[SPACES];		/* of the arenas, with the model's */

	int chunk;			/* sequences computed at once */
	int chunks;			/* of a rank and step */
	uint64_t held_out;		/* sequences at the data's end */
	uint64_t updates;		/* made so far */

	/* Of the last chunk of a step. */
	size_t summed;			/* floats of level 0 that already have
					   the sum of all levels */
	double computed;		/* when its last operator had ended */

	/*
	 * Device memory. Level 0 is the gradient in the collective's buffer,
	 * and the parameters follow it there. If a tree sums the chunks, the
	 * other levels have partial sums: chunk c, in the order of computation,
	 * is written to level n, where n counts the ones of c in binary.
	 */
	float *param;
	float *levels[MAX_LEVELS];
	int level_count;		/* levels above 0 */
	float *m, *v;			/* AdamW's moments, or v alone; NULL */
	int32_t *tokens, *targets;	/* [chunk][context] */
	double *losses;			/* [chunks] */
	double *blocks;			/* sums of squares */
	float *logits;			/* [context][vocab], for --sample */

	/* Host memory. */
	int32_t *read;			/* [2][chunk][context] */
	double *host_losses, *host_blocks;
	float *piece;			/* [PIECE]: on the way to the device */
	uint64_t *samples;		/* [chunk] */
	struct share *shares;		/* [ranks]: what agree() gives */
	double *rank_losses;		/* [ranks] */
};

/*
 * Set up this rank: model, memory (unless --plan is given), buckets. options
 * must be complete. Returns NULL with error set on failure.
 */
struct trainer *trainer_create(const struct options *options,
			       struct collective *collective,
			       const struct data *data,
			       struct ddp_error *error);

/* Values that the optimizer keeps for each parameter: 0, 1 or 2. */
int trainer_count_moments(const struct options *options);

/* Accepts NULL. */
void trainer_destroy(struct trainer *trainer);

/*
 * Allocate the shared buffer, check an all-reduce, and broadcast rank 0's
 * parameters. Collective. Returns 0, or -1 on every rank with the same error
 * set.
 */
int trainer_begin(struct trainer *trainer, struct ddp_error *error);

/*
 * The gradient of step `step` (from 1), summed over all ranks, and this rank's
 * share. Collective.
 */
void trainer_compute_gradient(struct trainer *trainer, uint64_t step,
			      struct share *share);

/* The learning rate of a step. */
double trainer_find_lr(const struct options *options, uint64_t step);

/* The global norm of the gradient: fp64, in a fixed order. */
double trainer_compute_norm(struct trainer *trainer);

/* Clip by norm, and take step `step`. */
void trainer_update(struct trainer *trainer, uint64_t step, double norm);

/* verify.c: a hash of this rank's parameters. */
uint64_t trainer_hash_parameters(struct trainer *trainer);

/*
 * All-reduce a pattern whose sum is exact and compare it; mine is what went
 * wrong on this rank before. Returns 0, or -1 as trainer_begin().
 */
int trainer_check_reduce(struct trainer *trainer, struct ddp_error *mine,
			 struct ddp_error *error);

/* Mean loss of the held-out sequences. Collective. */
double trainer_evaluate(struct trainer *trainer);

/* Print `count` bytes that the model would write, to stdout. */
void trainer_print_sample(struct trainer *trainer, uint64_t count);

/* plan.c: memory, buckets and slices, to stdout. */
void trainer_print_plan(const struct trainer *trainer);

#endif
