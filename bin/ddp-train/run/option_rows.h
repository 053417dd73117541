/* SPDX-License-Identifier: BSD-3-Clause */
/* Names the rows of the options, for all that set or compare them. */
#ifndef DDP_TRAIN_OPTION_ROWS_H
#define DDP_TRAIN_OPTION_ROWS_H

#include "run/train_options.h"

/* The order is that of --help all; a row follows what its default needs. */
enum option_name {
	/* Data and model */
	OPT_DATA, OPT_TOKENS, OPT_MODEL, OPT_PRESET, OPT_INIT, OPT_LAYERS,
	OPT_HEADS, OPT_WIDTH, OPT_CONTEXT, OPT_VOCAB, OPT_SEED, OPT_DROP_LAST,
	/* Training */
	OPT_STEPS, OPT_DTYPE, OPT_GRAD_DTYPE, OPT_ROUNDING, OPT_TF32,
	OPT_ATTENTION, OPT_DETERMINISTIC, OPT_BATCH, OPT_GLOBAL_BATCH,
	OPT_OPTIMIZER, OPT_LR, OPT_SCHEDULE, OPT_MIN_LR, OPT_WARMUP, OPT_DECAY, OPT_CLIP, OPT_BETA1,
	OPT_BETA2, OPT_EPS, OPT_MAX_BAD_STEPS, OPT_RECOMPUTE,
	/* The ranks */
	OPT_ZERO, OPT_DEVICE, OPT_BACKEND, OPT_CHECK_EVERY, OPT_TIMEOUT,
	/* Checkpoints */
	OPT_CHECKPOINT, OPT_CHECKPOINT_EVERY, OPT_KEEP, OPT_RESUME,
	/* Output */
	OPT_EVAL_EVERY, OPT_SAMPLE, OPT_LOG, OPT_PLAN, OPT_GPU,
	OPT_HELP, OPT_VERSION,
	/* Options for study only */
	OPT_GRANULE, OPT_MOMENTUM, OPT_BUCKET_MIB, OPT_OVERLAP,
	OPT_SHARE_GPU, OPTIONS
};

/*
 * The states that may be true of a run. A row's mark has those in which the
 * option does nothing.
 */
enum option_state {
	STATE_TOY = 1, STATE_BYTES = 2, STATE_TOKENS = 4, STATE_SGD = 8,
	STATE_ADAMW = 16, STATE_CONSTANT = 32, STATE_DETERMINISTIC = 64,
	STATE_LOOSE = 128,	/* not deterministic */
	STATE_UNSAVED = 256	/* without checkpoints */
};

/* A bit of a row's mark that is no state: --resume may change the option. */
enum { MAY_CHANGE = 512 };

/*
 * Sets each option to its default that was neither given nor recalled from a
 * checkpoint; bit i of either stands for row i. Returns 0, or -1 with error set
 * where options contradict one another.
 */
int options_settle(struct options *options, uint64_t given, uint64_t recalled,
		   struct ddp_error *error);

/* The same of what the device decides, once that is chosen. */
int options_settle_device(struct options *options, uint64_t given,
			  struct ddp_error *error);

#endif
