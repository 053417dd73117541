/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of ddp-train, a row each, and their defaults. */
#include <stddef.h>

#include "run/train_options.h"

#define AT(field) offsetof(struct options, field)

enum { MANY = 1000000000, SIZE = 65536 };

const struct options train_defaults = {
	.steps = 100, .seed = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
	.max_bad_steps = 1, .bucket_bytes = 25 << 20, .overlap = true,
	.granule = 1, .check_every = 100, .timeout = 300,
	.checkpoint_every = 1000, .keep = 2
};

/*
 * Groups, and the options of a group, stand in the order of use. Without .rare
 * it is one of the few in the short --help, which is to fit on a screen.
 */
static const struct tool_option rows[OPTIONS] = {
	[OPT_DATA] = { "data", TOOL_TEXT, AT(data), .mark = STATE_TOY,
	  .value = "FILE", .own = true, .heading = "Data and model",
	  .help = "learn the bytes of any file, the same on all nodes" },
	[OPT_TOKENS] = { "tokens", TOOL_TEXT, AT(data), .mark = STATE_TOY,
	  .value = "FILE", .own = true,
	  .help = "or the tokens of a token file, as llm.c's" },
	[OPT_MODEL] = { "model", TOOL_CHOICE, AT(model), .rare = true,
	  .words = TOOL_WORDS("toy", "gpt"),
	  .help = "toy, for study only: 10-10-5 on random data\n"
		  "(default: gpt with --data, --tokens, --preset or\n"
		  "--init, else toy)" },
	[OPT_PRESET] = { "preset", TOOL_TEXT, AT(preset), .mark = STATE_TOY,
	  .value = "NAME",
	  .help = "tiny, 10M, 124M or 774M (default: tiny)" },
	[OPT_INIT] = { "init", TOOL_TEXT, AT(init), .mark = STATE_TOY,
	  .value = "FILE", .own = true,
	  .help = "start from a GPT-2 model file of llm.c" },
	[OPT_LAYERS] = { "layers", TOOL_WHOLE, AT(shape.layers), .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "transformer blocks (default: the preset's)" },
	[OPT_HEADS] = { "heads", TOOL_WHOLE, AT(shape.heads), .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "attention heads; must divide the width (default:\n"
		  "the preset's)" },
	[OPT_WIDTH] = { "width", TOOL_WHOLE, AT(shape.width), .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "numbers that stand for a token (default: the\n"
		  "preset's)" },
	[OPT_CONTEXT] = { "context", TOOL_WHOLE, AT(shape.context),
	  .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "tokens of a sequence (default: the preset's)" },
	[OPT_VOCAB] = { "vocab", TOOL_WHOLE, AT(shape.vocab), .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_TOY | STATE_BYTES, .value = "N",
	  .help = "numbers that a token may be (default: 50257)" },
	[OPT_SEED] = { "seed", TOOL_WHOLE, AT(seed), .rare = true,
	  .min = 0, .max = UINT64_MAX, .value = "N",
	  .help = "of the order of the data and of the parameters\n"
		  "(default: 1)" },
	[OPT_DROP_LAST] = { "drop-last", TOOL_FLAG, AT(drop_last),
	  .rare = true, .mark = STATE_TOY,
	  .help = "leave out an epoch's last, incomplete step" },
	[OPT_STEPS] = { "steps", TOOL_WHOLE, AT(steps), .min = 1, .max = MANY,
	  .value = "N", .heading = "Training",
	  .mark = MAY_CHANGE,
	  .help = "steps to train (default: 100)" },
	[OPT_DTYPE] = { "dtype", TOOL_CHOICE, AT(dtype), .mark = MAY_CHANGE,
	  .words = TOOL_WORDS("fp32", "bf16", "fp16"),
	  .help = "what to compute with (default: fp32)" },
	[OPT_GRAD_DTYPE] = { "grad-dtype", TOOL_CHOICE, AT(grad_dtype),
	  .rare = true, .mark = MAY_CHANGE,
	  .words = TOOL_WORDS("fp32", "bf16", "fp16"),
	  .help = "of gradients between ranks: fp32 or as --dtype,\n"
		  "which is the default without --deterministic" },
	[OPT_ROUNDING] = { "rounding", TOOL_CHOICE, AT(rounding), .rare = true,
	  .words = TOOL_WORDS("nearest", "stochastic"), .mark = MAY_CHANGE,
	  .help = "of parameters to bf16: stochastic is up or down by\n"
		  "chance, as near as they are (default: nearest)" },
	[OPT_TF32] = { "tf32", TOOL_SWITCH, AT(tf32), .rare = true,
	  .mark = MAY_CHANGE,
	  .help = "fp32 on GPUs: multiply on tensor cores, which keep\n"
		  "10 bits of fraction (default: off)" },
	[OPT_ATTENTION] = { "attention", TOOL_CHOICE, AT(attention),
	  .rare = true, .mark = STATE_TOY | MAY_CHANGE,
	  .words = TOOL_WORDS("own", "cudnn"),
	  .help = "16 bit on GPUs: by ddp-train's own kernels, or by\n"
		  "cuDNN's (default: own)" },
	[OPT_DETERMINISTIC] = { "deterministic", TOOL_FLAG, AT(deterministic),
	  .rare = true,
	  .help = "for study: the same bits on any number of ranks" },
	[OPT_BATCH] = { "batch", TOOL_WHOLE, AT(batch), .min = 1, .max = SIZE,
	  .mark = STATE_DETERMINISTIC | MAY_CHANGE, .value = "N",
	  .help = "sequences of a rank at once (default: toy 64,\n"
		  "tiny 16, else 8; fewer to divide --global-batch)" },
	[OPT_GLOBAL_BATCH] = { "global-batch", TOOL_WHOLE, AT(global_batch),
	  .min = 1, .max = MANY, .value = "N",
	  .help = "sequences of a step (default: one batch a rank)" },
	[OPT_OPTIMIZER] = { "optimizer", TOOL_CHOICE, AT(optimizer),
	  .rare = true, .words = TOOL_WORDS("sgd", "adamw"),
	  .help = "how gradients change the parameters (default: gpt\n"
		  "adamw, toy sgd)" },
	[OPT_LR] = { "lr", TOOL_POSITIVE, AT(lr), .value = "X",
	  .mark = MAY_CHANGE,
	  .help = "learning rate (default: tiny 0.001, larger ones\n"
		  "0.0006, gpt with sgd 0.1, toy 0.001)" },
	[OPT_SCHEDULE] = { "schedule", TOOL_CHOICE, AT(schedule), .rare = true,
	  .words = TOOL_WORDS("constant", "cosine"),
	  .mark = MAY_CHANGE,
	  .help = "of the learning rate (default: gpt cosine, toy\n"
		  "constant)" },
	[OPT_MIN_LR] = { "min-lr", TOOL_REAL, AT(min_lr), .rare = true,
	  .mark = STATE_CONSTANT | MAY_CHANGE, .value = "X",
	  .help = "where cosine ends (default: a tenth of --lr)" },
	[OPT_WARMUP] = { "warmup", TOOL_WHOLE, AT(warmup), .rare = true,
	  .min = 0, .max = MANY, .value = "N",
	  .mark = MAY_CHANGE,
	  .help = "steps in which the learning rate rises (default:\n"
		  "gpt a tenth of --steps, at most 100; toy 0)" },
	[OPT_DECAY] = { "weight-decay", TOOL_REAL, AT(decay), .rare = true,
	  .value = "X",
	  .mark = MAY_CHANGE,
	  .help = "of matrices, not of vectors (default: gpt with\n"
		  "adamw 0.1, else 0)" },
	[OPT_CLIP] = { "clip", TOOL_REAL, AT(clip), .rare = true, .value = "X",
	  .mark = MAY_CHANGE,
	  .help = "clip the gradient to this norm; 0: do not\n"
		  "(default: gpt 1, toy 0)" },
	[OPT_BETA1] = { "beta1", TOOL_FRACTION, AT(beta1), .rare = true,
	  .mark = STATE_SGD, .value = "X",
	  .help = "how long AdamW remembers gradients (default: 0.9)" },
	[OPT_BETA2] = { "beta2", TOOL_FRACTION, AT(beta2), .rare = true,
	  .mark = STATE_SGD, .value = "X",
	  .help = "and their squares (default: 0.95)" },
	[OPT_EPS] = { "eps", TOOL_POSITIVE, AT(eps), .rare = true,
	  .mark = STATE_SGD, .value = "X",
	  .help = "what AdamW adds to the root of these (default:\n"
		  "1e-8)" },
	[OPT_MAX_BAD_STEPS] = { "max-bad-steps", TOOL_WHOLE, AT(max_bad_steps),
	  .rare = true, .min = 1, .max = MANY, .value = "N",
	  .mark = MAY_CHANGE,
	  .help = "stop after so many steps in a row whose loss or\n"
		  "gradient is no number (default: 1)" },
	[OPT_RECOMPUTE] = { "recompute", TOOL_CHOICE, AT(recompute),
	  .rare = true, .mark = STATE_TOY | MAY_CHANGE,
	  .words = TOOL_WORDS("auto", "on", "off"),
	  .help = "compute what norms and GELUs give again, not keep\n"
		  "it (default: auto, on CPUs)" },
	[OPT_ZERO] = { "zero", TOOL_WHOLE, AT(zero), .min = 0, .max = 3,
	  .value = "0|1", .rare = true, .mark = MAY_CHANGE,
	  .heading = "The ranks",
	  .help = "1: each rank has a part of the optimizer, which\n"
		  "takes less memory (default: 0)" },
	[OPT_DEVICE] = { "device", TOOL_CHOICE, AT(device), .rare = true,
	  .words = TOOL_WORDS("auto", "cpu", "cuda"), .own = true,
	  .help = "where a rank computes (default: auto, which is\n"
		  "cuda where there is a GPU)" },
	[OPT_BACKEND] = { "backend", TOOL_CHOICE, AT(backend), .rare = true,
	  .words = TOOL_WORDS("auto", "self", "mpi", "nccl"), .own = true,
	  .help = "how the ranks meet (default: auto)" },
	[OPT_CHECK_EVERY] = { "check-every", TOOL_WHOLE, AT(check_every),
	  .rare = true, .min = 0, .max = MANY, .value = "N",
	  .mark = MAY_CHANGE,
	  .help = "compare the ranks' parameters every N steps\n"
		  "(default: 100; 0: never)" },
	[OPT_TIMEOUT] = { "timeout", TOOL_WHOLE, AT(timeout), .rare = true,
	  .min = 0, .max = MANY, .value = "SECONDS", .own = true,
	  .help = "end all ranks, and name the one that is missing,\n"
		  "where a wait takes longer (default: 300; 0: never)" },
	[OPT_CHECKPOINT] = { "checkpoint", TOOL_TEXT, AT(checkpoint),
	  .value = "DIR", .mark = MAY_CHANGE, .heading = "Checkpoints",
	  .help = "save the run there, where all nodes see it" },
	[OPT_CHECKPOINT_EVERY] = { "checkpoint-every", TOOL_WHOLE,
	  AT(checkpoint_every), .rare = true, .min = 0, .max = MANY,
	  .mark = STATE_UNSAVED | MAY_CHANGE, .value = "N",
	  .help = "every N steps (default: 1000; 0: only at the end\n"
		  "and on SIGUSR1 or SIGTERM)" },
	[OPT_KEEP] = { "keep", TOOL_WHOLE, AT(keep), .rare = true,
	  .min = 1, .max = MANY,
	  .mark = STATE_UNSAVED | MAY_CHANGE, .value = "K",
	  .help = "how many of them stay (default: 2)" },
	[OPT_RESUME] = { "resume", TOOL_FLAG, AT(resume),
	  .mark = STATE_UNSAVED | MAY_CHANGE,
	  .help = "go on from the newest one there, if there is any" },
	[OPT_EVAL_EVERY] = { "eval-every", TOOL_WHOLE, AT(eval_every),
	  .min = 0, .max = MANY, .mark = STATE_TOY | MAY_CHANGE, .value = "N",
	  .heading = "Output",
	  .help = "print the loss of held-out data every N steps" },
	[OPT_SAMPLE] = { "sample", TOOL_WHOLE, AT(sample),
	  .min = 0, .max = MANY, .mark = STATE_TOY | STATE_TOKENS | MAY_CHANGE,
	  .value = "N",
	  .help = "print N bytes by the trained model" },
	[OPT_LOG] = { "log", TOOL_TEXT, AT(log), .value = "FILE", .own = true,
	  .help = "write one JSON object a step" },
	[OPT_PLAN] = { "plan", TOOL_FLAG, AT(plan),
	  .mark = MAY_CHANGE,
	  .help = "print memory and buckets, and exit" },
	[OPT_GPU] = { "gpu", TOOL_TEXT, AT(gpu), .rare = true,
	  .mark = STATE_TOY | MAY_CHANGE, .value = "NAME",
	  .help = "with --plan, count for this GPU, as H100\n"
		  "(default: this rank's)" },
	[OPT_HELP] = { "help", TOOL_HELP, AT(help), .own = true,
	  .value = "[all]",
	  .help = "print this text, or all options, and exit" },
	[OPT_VERSION] = { "version", TOOL_ASK, AT(version), .own = true,
	  .help = "print the version and exit" },
	[OPT_GRANULE] = { "granule", TOOL_WHOLE, AT(granule), .rare = true,
	  .min = 1, .max = SIZE, .mark = STATE_LOOSE, .value = "N",
	  .heading = "For study only",
	  .help = "sequences that --deterministic computes at once\n"
		  "(default: 1)" },
	[OPT_MOMENTUM] = { "momentum", TOOL_FRACTION, AT(momentum),
	  .rare = true, .mark = STATE_ADAMW, .value = "X",
	  .help = "how long SGD remembers gradients (default: 0)" },
	[OPT_BUCKET_MIB] = { "bucket-mib", TOOL_MIB, AT(bucket_bytes),
	  .rare = true, .value = "X",
	  .mark = MAY_CHANGE,
	  .help = "gradients exchanged at once (default: 25)" },
	[OPT_OVERLAP] = { "overlap", TOOL_SWITCH, AT(overlap), .rare = true,
	  .mark = MAY_CHANGE,
	  .help = "exchange gradients while others are computed\n"
		  "(default: on)" },
	[OPT_SHARE_GPU] = { "share-gpu", TOOL_FLAG, AT(share_gpu),
	  .rare = true, .own = true,
	  .help = "let ranks of a node share a GPU" },
};

const struct tool_options train_options = {
	.program = "ddp-train",
	.usage =
"Usage: srun --ddp [SRUN OPTIONS] ddp-train [OPTIONS]\n"
"Train a GPT, one process a rank; gradients are summed over the ranks while "
"the\nbackward pass runs.\n",
	.rows = rows,
	.count = OPTIONS,
	.stray = "a file is named by --data"
};
