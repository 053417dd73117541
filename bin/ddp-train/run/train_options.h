/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of ddp-train. */
#ifndef DDP_TRAIN_TRAIN_OPTIONS_H
#define DDP_TRAIN_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/data.h"
#include "device.h"
#include "model.h"
#include "tool/option.h"

enum compute { COMPUTE_AUTO, COMPUTE_CPU, COMPUTE_CUDA };
enum backend { BACKEND_AUTO, BACKEND_SELF, BACKEND_MPI, BACKEND_NCCL };
enum model_kind { MODEL_TOY, MODEL_GPT };
enum optimizer_kind { OPTIMIZER_SGD, OPTIMIZER_ADAMW };
enum rounding_kind { ROUNDING_NEAREST, ROUNDING_STOCHASTIC };
enum recompute { RECOMPUTE_AUTO, RECOMPUTE_ON, RECOMPUTE_OFF };
enum schedule { SCHEDULE_CONSTANT, SCHEDULE_COSINE };

/* The order is that of --help all; a row follows what its default needs. */
enum option_name {
	/* Data and model */
	OPT_DATA, OPT_TOKENS, OPT_MODEL, OPT_PRESET, OPT_INIT, OPT_LAYERS,
	OPT_HEADS, OPT_WIDTH, OPT_CONTEXT, OPT_VOCAB, OPT_SEED, OPT_DROP_LAST,
	/* Training */
	OPT_STEPS, OPT_DTYPE, OPT_GRAD_DTYPE, OPT_ROUNDING, OPT_TF32,
	OPT_ATTENTION, OPT_DETERMINISTIC, OPT_BATCH, OPT_GLOBAL_BATCH,
	OPT_OPTIMIZER, OPT_LR, OPT_SCHEDULE, OPT_MIN_LR, OPT_WARMUP, OPT_DECAY,
	OPT_CLIP, OPT_BETA1, OPT_BETA2, OPT_EPS, OPT_MAX_BAD_STEPS,
	OPT_RECOMPUTE,
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

struct manifest;

struct options {
	enum model_kind model;
	struct model_shape shape;	/* gpt: complete */
	const char *preset;		/* gpt: its name; NULL with init */
	const char *init;		/* model file of llm.c; NULL: none, and
					   with it shape is complete later */
	const char *data;		/* NULL: the model takes none */
	enum data_format format;
	const char *log;		/* NULL: no log */
	enum compute device;		/* never auto once parsed */
	enum backend backend;
	bool share_gpu;			/* ranks of a node may have one GPU */
	uint64_t steps;			/* 1 .. 10^9 */
	uint64_t batch;			/* sequences a rank computes at once,
					   1 .. 65536; 0: left open */
	uint64_t global_batch;		/* sequences a step; 0: batch * ranks */
	uint64_t seed;
	bool drop_last;
	enum device_type dtype;		/* what operators compute with */
	enum device_type grad_dtype;	/* what ranks exchange: the same, or
					   fp32 */
	enum rounding_kind rounding;	/* of the parameters to dtype; bf16 */
	bool tf32;			/* fp32 and cuda */
	enum attention_kind attention;	/* cudnn: 16 bit and cuda */

	enum optimizer_kind optimizer;
	double lr, min_lr;		/* above 0; 0 .. lr */
	enum schedule schedule;
	uint64_t warmup;		/* steps, below steps or 0 */
	double beta1, beta2, eps;	/* AdamW's */
	double momentum;		/* SGD's, 0 .. below 1 */
	double decay;			/* weight decay, not negative */
	double clip;			/* global norm; 0: off */
	uint64_t max_bad_steps;		/* stop after so many in a row */

	enum recompute recompute;	/* what norms and GELUs give */
	uint64_t zero;			/* 1: ranks share the update; else 0 */
	uint64_t bucket_bytes;		/* 25 MiB */
	bool overlap;
	bool deterministic;
	uint64_t granule;		/* sequences; 1 */
	uint64_t check_every;		/* parameter hashes; 0: never */
	uint64_t timeout;		/* seconds of a wait; 0: for ever */
	const char *checkpoint;		/* folder to save in; NULL: none */
	uint64_t checkpoint_every;	/* steps; 0: at the end alone */
	uint64_t keep;			/* checkpoints, 1 .. */
	bool resume;			/* from the newest one there */
	struct manifest *from;		/* which that is; NULL: none. The
					   run's to free */
	uint64_t eval_every;		/* 0: never */
	uint64_t sample;		/* bytes to print at the end; 0: none */
	bool plan;			/* print it and exit */
	const char *gpu;		/* whose step to predict then; NULL:
					   this rank's, if it is known */
	enum tool_help help;		/* asked for; the rest is not set */
	bool version;			/* likewise */
};

/*
 * Fill options from the arguments, and with --resume from the checkpoint; with
 * --checkpoint, catch signals before. The strings are borrowed from argv and
 * from `from`. Returns 0, or -1 with error set to DDP_ERROR_ARGUMENT
 * (DDP_ERROR_SYSTEM: no checkpoint can be read; DDP_ERROR_CUDA: there is no GPU
 * for what was asked) and options to the defaults, but with the device and the
 * backend that were asked for: the ranks meet there to be told.
 */
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

/*
 * Completes the options once the number of ranks is known. Sets batch and
 * global_batch where they were left open and checks that the ranks, batch and
 * granule divide it. Returns 0 or -1 with error set.
 */
int options_complete(struct options *options, int ranks,
		     struct ddp_error *error);

/* The rows by enum option_name; and all defaults that follow from nothing. */
extern const struct tool_options train_options;
extern const struct options train_defaults;

#endif
