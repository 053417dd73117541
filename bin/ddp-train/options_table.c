/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "options_table.h"

#define AT(field) offsetof(struct options, field)

enum { MANY = 1000000000, SIZE = 65536, COLUMN = 30 };

const struct option_row option_rows[OPTIONS] = {
	[OPT_MODEL] = { "model", CHOICE, AT(model), 0, 0, 0, "toy|gpt",
		.help = "toy: 10-10-5 on random data (default: gpt\n"
			"with --data, --tokens or --preset, else toy)",
		.heading = "The model and its data" },
	[OPT_PRESET] = { "preset", TEXT, AT(preset), 0, 0, STATE_TOY, "NAME",
		.help = "tiny, 10M, 124M or 774M (default: tiny)" },
	[OPT_LAYERS] = { "layers", WHOLE, AT(shape.layers), 1, SIZE, STATE_TOY,
		"N", .help = "this and the next three: not the preset's" },
	[OPT_HEADS] = { "heads", WHOLE, AT(shape.heads), 1, SIZE, STATE_TOY,
		"N", .help = "attention heads; must divide the width" },
	[OPT_WIDTH] = { "width", WHOLE, AT(shape.width), 1, SIZE, STATE_TOY,
		"N", .help = "numbers that stand for a token" },
	[OPT_CONTEXT] = { "context", WHOLE, AT(shape.context), 1, SIZE,
		STATE_TOY, "N", .help = "tokens of a sequence" },
	[OPT_VOCAB] = { "vocab", WHOLE, AT(shape.vocab), 1, SIZE,
		STATE_TOY | STATE_BYTES, "N",
		.help = "numbers that a token may be (default: 50257)" },
	[OPT_DATA] = { "data", TEXT, AT(data), 0, 0, STATE_TOY, "FILE",
		.help = "learn the bytes of any file, the same on every\n"
			"node", .own = true },
	[OPT_TOKENS] = { "tokens", TEXT, AT(data), 0, 0, STATE_TOY, "FILE",
		.help = "learn the tokens of a token file", .own = true },
	[OPT_DROP_LAST] = { "drop-last", FLAG, AT(drop_last), 0, 0, STATE_TOY,
		NULL, .help = "leave out an epoch's last, incomplete step" },
	[OPT_SEED] = { "seed", WHOLE, AT(seed), 0, UINT64_MAX, 0, "N",
		.help = "of the order of the data and of the parameters\n"
			"(default: 1)" },
	[OPT_STEPS] = { "steps", WHOLE, AT(steps), 1, MANY, 0, "N",
		.help = "steps to train (default: 100)",
		.heading = "Training" },
	[OPT_DETERMINISTIC] = { "deterministic", FLAG, AT(deterministic), 0, 0,
		0, NULL, .help = "the same bits whatever the number of ranks" },
	[OPT_GRANULE] = { "granule", WHOLE, AT(granule), 1, SIZE, STATE_LOOSE,
		"N", .help = "sequences computed at once there (default: 1)" },
	[OPT_BATCH] = { "batch", WHOLE, AT(batch), 1, SIZE, STATE_DETERMINISTIC,
		"N",
		.help = "sequences that a rank computes at once (default:\n"
			"toy 64, tiny 16, else 8, or fewer to divide\n"
			"--global-batch)" },
	[OPT_GLOBAL_BATCH] = { "global-batch", WHOLE, AT(global_batch), 1, MANY,
		0, "N",
		.help = "sequences of a step, in as many batches as it\n"
			"takes (default: one batch a rank)" },
	[OPT_OPTIMIZER] = { "optimizer", CHOICE, AT(optimizer), 0, 0, 0,
		"sgd|adamw", .help = "(default: gpt adamw, toy sgd)" },
	[OPT_LR] = { "lr", POSITIVE, AT(lr), 0, 0, 0, "X",
		.help = "learning rate (default: tiny 0.001, larger ones\n"
			"0.0006, gpt with sgd 0.1, toy 0.001)" },
	[OPT_SCHEDULE] = { "schedule", CHOICE, AT(schedule), 0, 0, 0,
		"constant|cosine",
		.help = "of the learning rate (default: gpt cosine, toy\n"
			"constant)" },
	[OPT_MIN_LR] = { "min-lr", REAL, AT(min_lr), 0, 0, STATE_CONSTANT, "X",
		.help = "where cosine ends (default: a tenth of --lr)" },
	[OPT_WARMUP] = { "warmup", WHOLE, AT(warmup), 0, MANY, 0, "N",
		.help = "steps in which the learning rate rises (default:\n"
			"gpt a tenth of --steps, at most 100; toy 0)" },
	[OPT_BETA1] = { "beta1", FRACTION, AT(beta1), 0, 0, STATE_SGD, "X",
		.help = "AdamW's (default: 0.9)" },
	[OPT_BETA2] = { "beta2", FRACTION, AT(beta2), 0, 0, STATE_SGD, "X",
		.help = "AdamW's (default: 0.95)" },
	[OPT_EPS] = { "eps", POSITIVE, AT(eps), 0, 0, STATE_SGD, "X",
		.help = "AdamW's (default: 1e-8)" },
	[OPT_MOMENTUM] = { "momentum", FRACTION, AT(momentum), 0, 0,
		STATE_ADAMW, "X", .help = "SGD's (default: 0)" },
	[OPT_DECAY] = { "weight-decay", REAL, AT(decay), 0, 0, 0, "X",
		.help = "of matrices, not of vectors (default: gpt with\n"
			"adamw 0.1, else 0)" },
	[OPT_CLIP] = { "clip", REAL, AT(clip), 0, 0, 0, "X",
		.help = "clip the gradient to this norm; 0: do not\n"
			"(default: gpt 1, toy 0)" },
	[OPT_MAX_BAD_STEPS] = { "max-bad-steps", WHOLE, AT(max_bad_steps), 1,
		MANY, 0, "N",
		.help = "stop after so many steps in a row whose loss is\n"
			"no number (default: 1)" },
	[OPT_BACKEND] = { "backend", CHOICE, AT(backend), 0, 0, 0,
		"auto|self|mpi", .help = "how the ranks meet (default: auto)",
		.own = true, .heading = "The ranks" },
	[OPT_BUCKET_MIB] = { "bucket-mib", MIB, AT(bucket_bytes), 0, 0, 0, "X",
		.help = "gradients exchanged at once (default: 25)" },
	[OPT_OVERLAP] = { "overlap", SWITCH, AT(overlap), 0, 0, 0, "off|on",
		.help = "exchange gradients while others are computed\n"
			"(default: on)" },
	[OPT_CHECK_EVERY] = { "check-every", WHOLE, AT(check_every), 0, MANY, 0,
		"N", .help = "compare the ranks' parameters every N steps\n"
			"(default: 100; 0: never)" },
	[OPT_PLAN] = { "plan", FLAG, AT(plan), 0, 0, 0, NULL,
		.help = "print memory and buckets, and exit",
		.heading = "Output" },
	[OPT_LOG] = { "log", TEXT, AT(log), 0, 0, 0, "FILE",
		.help = "write one JSON object a step", .own = true },
	[OPT_EVAL_EVERY] = { "eval-every", WHOLE, AT(eval_every), 0, MANY,
		STATE_TOY, "N",
		.help = "hold data out and print its loss every N steps\n"
			"(default: 0, never)" },
	[OPT_SAMPLE] = { "sample", WHOLE, AT(sample), 0, MANY,
		STATE_TOY | STATE_TOKENS, "N",
		.help = "print N bytes by the trained model" },
	[OPT_HELP] = { "help", FLAG, AT(help), 0, 0, 0, NULL,
		.help = "print this text and exit", .own = true },
	[OPT_VERSION] = { "version", FLAG, AT(version), 0, 0, 0, NULL,
		.help = "print the version and exit", .own = true }
};

/* A row, its text in a column of its own. */
static void print_row(FILE *file, const struct option_row *row)
{
	const char *text = row->help;
	int width = fprintf(file, "  --%s %s", row->name,
			    row->value ? row->value : "");

	for (;;) {
		int length = (int)strcspn(text, "\n");

		fprintf(file, "%*s%.*s\n", COLUMN - width, "", length, text);
		text += length;
		if (!*text++)
			break;
		width = 0;
	}
}

const char *options_help(void)
{
	static char text[8192];
	FILE *file = fmemopen(text, sizeof(text), "w");

	if (!file)
		return "";
	fputs("Usage: srun --ddp [SRUN OPTIONS] ddp-train [OPTIONS]\n"
	      "Train a model, one process a rank; gradients are summed over "
	      "the ranks while the\nbackward pass runs.\n", file);
	for (int i = 0; i < OPTIONS; i++) {
		if (option_rows[i].heading)
			fprintf(file, "\n%s:\n", option_rows[i].heading);
		print_row(file, &option_rows[i]);
	}
	fclose(file);
	return text;
}
