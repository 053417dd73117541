/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the options, between options.c and options_table.c alone. */
#ifndef DDP_TRAIN_OPTIONS_TABLE_H
#define DDP_TRAIN_OPTIONS_TABLE_H

#include "options.h"

/* One that others' defaults follow comes before them. */
enum option_name {
	OPT_MODEL, OPT_PRESET, OPT_LAYERS, OPT_HEADS, OPT_WIDTH, OPT_CONTEXT,
	OPT_VOCAB, OPT_DATA, OPT_TOKENS, OPT_DROP_LAST, OPT_SEED, OPT_STEPS,
	OPT_DETERMINISTIC, OPT_GRANULE, OPT_BATCH, OPT_GLOBAL_BATCH,
	OPT_OPTIMIZER, OPT_LR, OPT_SCHEDULE, OPT_MIN_LR, OPT_WARMUP,
	OPT_BETA1, OPT_BETA2, OPT_EPS, OPT_MOMENTUM, OPT_DECAY, OPT_CLIP,
	OPT_MAX_BAD_STEPS, OPT_BACKEND, OPT_BUCKET_MIB, OPT_OVERLAP,
	OPT_CHECK_EVERY, OPT_PLAN, OPT_LOG, OPT_EVAL_EVERY, OPT_SAMPLE,
	OPT_HELP, OPT_VERSION, OPTIONS
};

/* What follows the option, and the field that it fills. */
enum option_kind {
	FLAG,			/* nothing: bool */
	SWITCH,			/* off or on: bool */
	CHOICE,			/* a word of value: an enum in that order */
	TEXT,			/* not empty: const char * */
	WHOLE,			/* min to max: uint64_t */
	REAL,			/* 0 or more: double */
	POSITIVE,		/* above 0: double */
	FRACTION,		/* 0 to below 1: double */
	MIB			/* of 2^20 bytes, fractions too: uint64_t */
};

/* What may be true of a run; each makes some options do nothing. */
enum option_state {
	STATE_TOY = 1, STATE_BYTES = 2, STATE_TOKENS = 4, STATE_SGD = 8,
	STATE_ADAMW = 16, STATE_CONSTANT = 32, STATE_DETERMINISTIC = 64,
	STATE_LOOSE = 128	/* not deterministic */
};

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t field;			/* its offset in struct options */
	uint64_t min, max;		/* WHOLE's */
	unsigned idle;			/* states in which it does nothing */
	const char *value, *help;	/* for --help; CHOICE: a|b|c */
	bool own;			/* need not be the same on all ranks */
	const char *heading;		/* above it in --help; NULL: none */
};

extern const struct option_row option_rows[OPTIONS];

/*
 * What was not given where bit i of `given` stands for row i: its default.
 * Returns 0, or -1 with error set where options contradict one another.
 */
int options_settle(struct options *options, uint64_t given,
		   struct ddp_error *error);

#endif
