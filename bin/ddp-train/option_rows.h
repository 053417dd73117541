/* SPDX-License-Identifier: BSD-3-Clause */
/* Which option is which row, between train_options.c and settle.c alone. */
#ifndef DDP_TRAIN_OPTION_ROWS_H
#define DDP_TRAIN_OPTION_ROWS_H

#include "train_options.h"

/* One that others' defaults follow comes before them. */
enum option_name {
	OPT_MODEL, OPT_PRESET, OPT_LAYERS, OPT_HEADS, OPT_WIDTH, OPT_CONTEXT,
	OPT_VOCAB, OPT_DATA, OPT_TOKENS, OPT_DROP_LAST, OPT_SEED, OPT_STEPS,
	OPT_DETERMINISTIC, OPT_GRANULE, OPT_BATCH, OPT_GLOBAL_BATCH,
	OPT_OPTIMIZER, OPT_LR, OPT_SCHEDULE, OPT_MIN_LR, OPT_WARMUP,
	OPT_BETA1, OPT_BETA2, OPT_EPS, OPT_MOMENTUM, OPT_DECAY, OPT_CLIP,
	OPT_MAX_BAD_STEPS, OPT_BACKEND, OPT_BUCKET_MIB, OPT_OVERLAP,
	OPT_CHECK_EVERY, OPT_TIMEOUT, OPT_PLAN, OPT_LOG, OPT_EVAL_EVERY,
	OPT_SAMPLE, OPT_HELP, OPT_VERSION, OPTIONS
};

/* What may be true of a run: a row's mark has what makes it do nothing. */
enum option_state {
	STATE_TOY = 1, STATE_BYTES = 2, STATE_TOKENS = 4, STATE_SGD = 8,
	STATE_ADAMW = 16, STATE_CONSTANT = 32, STATE_DETERMINISTIC = 64,
	STATE_LOOSE = 128	/* not deterministic */
};

/*
 * What was not given where bit i of `given` stands for row i: its default.
 * Returns 0, or -1 with error set where options contradict one another.
 */
int options_settle(struct options *options, uint64_t given,
		   struct ddp_error *error);

#endif
