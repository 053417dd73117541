/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trainer is one rank of a run: its state, and what it does in a step.
 *
 * A step takes the gradient of global_batch sequences, at positions 0, 1, ...
 * of the step; position p is the part of replica p of the sampler. Rank r of n
 * has the positions r, r + n, ..., and computes them in chunks. A chunk has
 * --batch sequences or, with --deterministic, is a granule. Granule g of G has
 * the positions g, g + G, ..., so that rank r has granules r, r + n, ...
 */
#ifndef DDP_TRAIN_TRAINER_H
#define DDP_TRAIN_TRAINER_H

#include <stdbool.h>

#include "data/data.h"
#include "data/rng.h"
#include "device.h"
#include "run/train_options.h"
#include "step/bucket.h"

struct collective;
struct ddp_error;
struct model;

/* A rank's numbers of its step; gathered from all. Times are the device's. */
struct share {
	double loss;			/* its part of the mean */
	double seconds;			/* from the end of the step before, or
					   where that was waited for from its
					   own begin, to its end */
	double busy;			/* seconds to the backward pass's end */
	double exposed;			/* seconds from there to the last
					   gradient reduced, and of waiting for
					   what --zero 1 gathers */
	double norm;			/* of the whole gradient; with --zero 1
					   from the sums that all gathered */
	bool skipped;			/* for it is not finite */
	double loss_scale;		/* of the next step */
	uint64_t hash;			/* of its parameters, or 0 */
	uint32_t news, crc;		/* of checkpoints: see save.c */
};

enum { MAX_LEVELS = 32, PIECE = 1 << 18 };

/*
 * The events of a step, in the compute queue. Two steps are under way at once,
 * and begin where the one before ended: each of the three has a set of its own,
 * from trainer_find_event(step, 0) on.
 */
enum step_event {
	STEP_BEGUN, STEP_COMPUTED,	/* its last gradient */
	STEP_REDUCED,			/* these have been summed */
	SUMS_BEGUN, SUMS_GATHERED,	/* of squares, with --zero 1 */
	GATHERS_BEGUN, GATHERS_ENDED,	/* of parameters, likewise */
	STEP_ENDED,			/* its results are in host memory */
	STEP_SET
};
enum { STEP_SETS = 3 };

static inline int trainer_find_event(uint64_t step, enum step_event event)
{
	return STEP_EVENTS + (int)(step % STEP_SETS) * STEP_SET + (int)event;
}

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

	/* The state of the last chunk of a step, and of the steps. */
	size_t summed;			/* values of the gradient that already
					   have the sum of all chunks */
	uint64_t step, read;		/* the last one that was taken and read;
					   0: none */
	bool apart[STEP_SETS];		/* step n: all before were read first */

	/*
	 * Device memory. The gradient that ranks exchange, of --grad-dtype, is
	 * in the collective's buffer, and the parameters that operators read,
	 * of --dtype, follow it there; in an fp32 run they are the master too.
	 * With --zero 1, the sums of squares come last.
	 *
	 * m, v and the master of a 16-bit run have the values that this rank
	 * updates, one after the other: see bucket.h.
	 *
	 * Level 0 is the fp32 sum over the chunks: the gradient itself if that
	 * is fp32, and else NULL with one chunk. If a tree sums the chunks, the
	 * other levels have partial sums: chunk c, in the order of computation,
	 * goes to level n, where n counts the ones of c in binary. An fp32 run
	 * computes there; in a 16-bit run, operators write a chunk's gradient
	 * to scratch, which may be the gradient itself.
	 */
	void *grad, *param, *scratch;
	float *master;
	float *levels[MAX_LEVELS];
	int level_count;		/* levels above 0 */
	float *m, *v;			/* AdamW's moments, or v alone; NULL */
	int32_t *tokens, *targets;	/* [chunk][context], one after the */
	int32_t *rows;			/* other; likewise: by token */
	double *losses;			/* [chunks] */
	double *blocks;			/* sums of squares; with --zero 1 those
					   of rank after rank */
	uint32_t *order;		/* where in blocks the sum of each block
					   is; NULL: in order */
	struct step_state *state;
	size_t optimizer_bytes;		/* of m and v, */
	size_t master_bytes;		/* and of a master of its own */
	void *logits;			/* [context][vocab], for --sample */

	/* Host memory. A step's results wait there while the next runs. */
	int32_t *read_tokens;		/* [4][chunk][context]: tokens, targets,
					   rows, and room to sort these */
	double *host_losses;		/* [2][chunks] */
	struct step_state *host_state;	/* [2]: of step n [n % 2] */
	float *piece;			/* [PIECE]: on the way to the device */
	char *staging;			/* the collective's */
	float *snapshot;		/* this rank's part of a checkpoint */
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

/* Returns true if the backward pass computes norms and GELUs again. */
bool trainer_must_recompute(const struct trainer *trainer);

/* Parameters, and what lies behind them: struct model's spare. */
size_t trainer_count_values(const struct trainer *trainer);

/* Bytes of the collective's buffer: see trainer->grad. */
size_t trainer_count_buffer(const struct trainer *trainer);

/*
 * Bytes of other ranks' gradients, where a GPU sums them itself: those of
 * --deterministic. And all that the collective takes of the device's memory.
 */
size_t trainer_count_received(const struct trainer *trainer);
size_t trainer_count_exchanged(const struct trainer *trainer);

/* Bytes of a rank beside what the collective takes. */
size_t trainer_count_own(const struct trainer *trainer);

/* Returns true if the fp32 sum over the chunks has memory of its own. */
bool trainer_has_sum(const struct trainer *trainer);

/* Bytes of host memory for this rank's part of a checkpoint; 0: no part. */
size_t trainer_count_snapshot(const struct trainer *trainer);

/* Accepts NULL. */
void trainer_destroy(struct trainer *trainer);

/*
 * Allocate the shared buffer, check how gradients are summed, and broadcast
 * rank 0's parameters. Collective. Returns 0, or -1 on every rank with the same
 * error set.
 */
int trainer_begin(struct trainer *trainer, struct ddp_error *error);

/*
 * Take step `step` (from 1): the gradient, summed over all ranks, and the
 * update. Collective; waits for nothing of it on the device, but with several
 * ranks until these have come in the step before.
 */
void trainer_take_step(struct trainer *trainer, uint64_t step);

/*
 * Wait for a step, the last one or the one before, and set its share but the
 * hash. Returns 0, or -1 with error set if the device failed.
 */
int trainer_read_step(struct trainer *trainer, uint64_t step,
		      struct share *share, struct ddp_error *error);

/*
 * Copy bytes of the device's memory to the host, once all that was asked for
 * before is done. Meanwhile the collective sees to its deadline. Returns 0; or
 * -1 if work of the device has failed, as its check() tells.
 */
int trainer_fetch(struct trainer *trainer, void *to, const void *from,
		   size_t bytes);

/*
 * The rows of a batch by their tokens: see op_embed_backward. order[rows] = the
 * numbers 0 .. rows - 1 by token, and those of one token upwards. Tokens are
 * 0 .. 65535; room[rows] is overwritten.
 */
void order_by_token(int rows, const int32_t *tokens, int32_t *order,
		    int32_t *room);

/* Record an event of the step that is taken. */
void trainer_mark(struct trainer *trainer, enum step_event event);

/* The learning rate of a step. */
double trainer_find_lr(const struct options *options, uint64_t step);

/* How parameters are rounded to what operators read, from this value on. */
struct rounding trainer_find_rounding(const struct trainer *trainer,
				      size_t first);

/*
 * Set trainer->state from the gradient: its global norm, in a fixed order, and
 * what follows from it.
 */
void trainer_finish_gradient(struct trainer *trainer);

/* Take step `step`, as trainer->state says. */
void trainer_update(struct trainer *trainer, uint64_t step);

/* Sets the state, in host memory, to go on from, before the first step. */
void trainer_set_state(struct trainer *trainer, const struct step_state *state);

/* Returns the master of a value that this rank updates. */
float *trainer_find_master(const struct trainer *trainer,
			   const struct bucket *bucket, size_t value);

/*
 * Copies those of the values at `from`, in any memory, that this rank updates
 * to `to`, in the device's. `to` has all values if whole; else those alone: see
 * bucket.h.
 */
void trainer_keep_values(struct trainer *trainer, float *to, bool whole,
			 struct range values, const float *from);

/*
 * Round each rank's own masters, once they are right, to what operators read,
 * and give these to all ranks. Collective.
 */
void trainer_share_parameters(struct trainer *trainer);

/* How many sums of squares --zero 1 has room for, in all; 0 without it. */
size_t trainer_count_sums(const struct trainer *trainer);

/* Set trainer->order. Returns 0, or -1 with error set. */
int trainer_order_sums(struct trainer *trainer, struct ddp_error *error);

/*
 * Begin to give all ranks this one's slice of the parameters in bucket i, with
 * --zero 1. Collective. Call trainer_wait_for_gathers() before these are read.
 */
void trainer_start_gather(struct trainer *trainer, int i);
void trainer_wait_for_gathers(struct trainer *trainer);

/* A hash of the parameters that every rank has. */
uint64_t trainer_hash_parameters(struct trainer *trainer);

/*
 * Mean loss of the held-out sequences; meaningless if a device has failed.
 * Collective.
 */
double trainer_evaluate(struct trainer *trainer);

#endif
