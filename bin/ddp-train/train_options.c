/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of ddp-train, a row each, and their defaults. */
#include <stddef.h>

#include "option_rows.h"

#define AT(field) offsetof(struct options, field)

enum { MANY = 1000000000, SIZE = 65536 };

static const struct options defaults = {
	.steps = 100, .seed = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
	.max_bad_steps = 1, .bucket_bytes = 25 << 20, .overlap = true,
	.granule = 1, .check_every = 100, .timeout = 300
};

static const struct tool_option rows[OPTIONS] = {
	[OPT_MODEL] = { "model", TOOL_CHOICE, AT(model),
	  .words = TOOL_WORDS("toy", "gpt"),
	  .heading = "The model and its data",
	  .help = "toy: 10-10-5 on random data (default: gpt\n"
		  "with --data, --tokens or --preset, else toy)" },
	[OPT_PRESET] = { "preset", TOOL_TEXT, AT(preset), .mark = STATE_TOY,
	  .value = "NAME",
	  .help = "tiny, 10M, 124M or 774M (default: tiny)" },
	[OPT_LAYERS] = { "layers", TOOL_WHOLE, AT(shape.layers),
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "this and the next three: not the preset's" },
	[OPT_HEADS] = { "heads", TOOL_WHOLE, AT(shape.heads),
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "attention heads; must divide the width" },
	[OPT_WIDTH] = { "width", TOOL_WHOLE, AT(shape.width),
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "numbers that stand for a token" },
	[OPT_CONTEXT] = { "context", TOOL_WHOLE, AT(shape.context),
	  .min = 1, .max = SIZE, .mark = STATE_TOY, .value = "N",
	  .help = "tokens of a sequence" },
	[OPT_VOCAB] = { "vocab", TOOL_WHOLE, AT(shape.vocab),
	  .min = 1, .max = SIZE, .mark = STATE_TOY | STATE_BYTES, .value = "N",
	  .help = "numbers that a token may be (default: 50257)" },
	[OPT_DATA] = { "data", TOOL_TEXT, AT(data), .mark = STATE_TOY,
	  .value = "FILE", .own = true,
	  .help = "learn the bytes of any file, the same on every\n"
		  "node" },
	[OPT_TOKENS] = { "tokens", TOOL_TEXT, AT(data), .mark = STATE_TOY,
	  .value = "FILE", .own = true,
	  .help = "learn the tokens of a token file" },
	[OPT_DROP_LAST] = { "drop-last", TOOL_FLAG, AT(drop_last),
	  .mark = STATE_TOY,
	  .help = "leave out an epoch's last, incomplete step" },
	[OPT_SEED] = { "seed", TOOL_WHOLE, AT(seed),
	  .min = 0, .max = UINT64_MAX, .value = "N",
	  .help = "of the order of the data and of the parameters\n"
		  "(default: 1)" },
	[OPT_STEPS] = { "steps", TOOL_WHOLE, AT(steps), .min = 1, .max = MANY,
	  .value = "N", .heading = "Training",
	  .help = "steps to train (default: 100)" },
	[OPT_DETERMINISTIC] = { "deterministic", TOOL_FLAG, AT(deterministic),
	  .help = "the same bits whatever the number of ranks" },
	[OPT_GRANULE] = { "granule", TOOL_WHOLE, AT(granule),
	  .min = 1, .max = SIZE, .mark = STATE_LOOSE, .value = "N",
	  .help = "sequences computed at once there (default: 1)" },
	[OPT_BATCH] = { "batch", TOOL_WHOLE, AT(batch), .min = 1, .max = SIZE,
	  .mark = STATE_DETERMINISTIC, .value = "N",
	  .help = "sequences that a rank computes at once (default:\n"
		  "toy 64, tiny 16, else 8, or fewer to divide\n"
		  "--global-batch)" },
	[OPT_GLOBAL_BATCH] = { "global-batch", TOOL_WHOLE, AT(global_batch),
	  .min = 1, .max = MANY, .value = "N",
	  .help = "sequences of a step, in as many batches as it\n"
		  "takes (default: one batch a rank)" },
	[OPT_OPTIMIZER] = { "optimizer", TOOL_CHOICE, AT(optimizer),
	  .words = TOOL_WORDS("sgd", "adamw"),
	  .help = "(default: gpt adamw, toy sgd)" },
	[OPT_LR] = { "lr", TOOL_POSITIVE, AT(lr), .value = "X",
	  .help = "learning rate (default: tiny 0.001, larger ones\n"
		  "0.0006, gpt with sgd 0.1, toy 0.001)" },
	[OPT_SCHEDULE] = { "schedule", TOOL_CHOICE, AT(schedule),
	  .words = TOOL_WORDS("constant", "cosine"),
	  .help = "of the learning rate (default: gpt cosine, toy\n"
		  "constant)" },
	[OPT_MIN_LR] = { "min-lr", TOOL_REAL, AT(min_lr),
	  .mark = STATE_CONSTANT, .value = "X",
	  .help = "where cosine ends (default: a tenth of --lr)" },
	[OPT_WARMUP] = { "warmup", TOOL_WHOLE, AT(warmup),
	  .min = 0, .max = MANY, .value = "N",
	  .help = "steps in which the learning rate rises (default:\n"
		  "gpt a tenth of --steps, at most 100; toy 0)" },
	[OPT_BETA1] = { "beta1", TOOL_FRACTION, AT(beta1), .mark = STATE_SGD,
	  .value = "X",
	  .help = "AdamW's (default: 0.9)" },
	[OPT_BETA2] = { "beta2", TOOL_FRACTION, AT(beta2), .mark = STATE_SGD,
	  .value = "X",
	  .help = "AdamW's (default: 0.95)" },
	[OPT_EPS] = { "eps", TOOL_POSITIVE, AT(eps), .mark = STATE_SGD,
	  .value = "X",
	  .help = "AdamW's (default: 1e-8)" },
	[OPT_MOMENTUM] = { "momentum", TOOL_FRACTION, AT(momentum),
	  .mark = STATE_ADAMW, .value = "X",
	  .help = "SGD's (default: 0)" },
	[OPT_DECAY] = { "weight-decay", TOOL_REAL, AT(decay), .value = "X",
	  .help = "of matrices, not of vectors (default: gpt with\n"
		  "adamw 0.1, else 0)" },
	[OPT_CLIP] = { "clip", TOOL_REAL, AT(clip), .value = "X",
	  .help = "clip the gradient to this norm; 0: do not\n"
		  "(default: gpt 1, toy 0)" },
	[OPT_MAX_BAD_STEPS] = { "max-bad-steps", TOOL_WHOLE, AT(max_bad_steps),
	  .min = 1, .max = MANY, .value = "N",
	  .help = "stop after so many steps in a row whose loss is\n"
		  "no number (default: 1)" },
	[OPT_BACKEND] = { "backend", TOOL_CHOICE, AT(backend),
	  .words = TOOL_WORDS("auto", "self", "mpi"), .own = true,
	  .heading = "The ranks",
	  .help = "how the ranks meet (default: auto)" },
	[OPT_BUCKET_MIB] = { "bucket-mib", TOOL_MIB, AT(bucket_bytes),
	  .value = "X",
	  .help = "gradients exchanged at once (default: 25)" },
	[OPT_OVERLAP] = { "overlap", TOOL_SWITCH, AT(overlap),
	  .help = "exchange gradients while others are computed\n"
		  "(default: on)" },
	[OPT_CHECK_EVERY] = { "check-every", TOOL_WHOLE, AT(check_every),
	  .min = 0, .max = MANY, .value = "N",
	  .help = "compare the ranks' parameters every N steps\n"
		  "(default: 100; 0: never)" },
	[OPT_TIMEOUT] = { "timeout", TOOL_WHOLE, AT(timeout),
	  .min = 0, .max = MANY, .value = "SECONDS", .own = true,
	  .help = "end all ranks, and name the one that is missing,\n"
		  "where a wait takes longer (default: 300; 0: never)" },
	[OPT_PLAN] = { "plan", TOOL_FLAG, AT(plan), .heading = "Output",
	  .help = "print memory and buckets, and exit" },
	[OPT_LOG] = { "log", TOOL_TEXT, AT(log), .value = "FILE", .own = true,
	  .help = "write one JSON object a step" },
	[OPT_EVAL_EVERY] = { "eval-every", TOOL_WHOLE, AT(eval_every),
	  .min = 0, .max = MANY, .mark = STATE_TOY, .value = "N",
	  .help = "hold data out and print its loss every N steps\n"
		  "(default: 0, never)" },
	[OPT_SAMPLE] = { "sample", TOOL_WHOLE, AT(sample),
	  .min = 0, .max = MANY, .mark = STATE_TOY | STATE_TOKENS,
	  .value = "N",
	  .help = "print N bytes by the trained model" },
	[OPT_HELP] = { "help", TOOL_ASK, AT(help), .own = true,
	  .help = "print this text and exit" },
	[OPT_VERSION] = { "version", TOOL_ASK, AT(version), .own = true,
	  .help = "print the version and exit" },
};

const struct tool_options train_options = {
	.program = "ddp-train",
	.usage =
"Usage: srun --ddp [SRUN OPTIONS] ddp-train [OPTIONS]\n"
"Train a model, one process a rank; gradients are summed over the ranks while "
"the\nbackward pass runs.\n",
	.rows = rows,
	.count = OPTIONS,
	.stray = "a file is named by --data"
};

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = defaults;
	uint64_t given = 0;
	int result = tool_options_parse(&train_options, argc, argv, &parsed,
					&given, error);

	if (result == 0 && !parsed.help && !parsed.version)
		result = options_settle(&parsed, given, error);
	*options = result == 0 ? parsed : defaults;
	options->backend = parsed.backend;
	return result;
}
