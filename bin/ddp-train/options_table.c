/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, a row each, and what they say together. */
#include <inttypes.h>
#include <string.h>

#include "layout/error.h"
#include "options_table.h"

#define AT(field) offsetof(struct options, field)

enum { MANY = 1000000000, SIZE = 65536 };

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

static bool is_given(uint64_t given, enum option_name name)
{
	return given >> name & 1;
}

/* The states of a run with these options, or-ed. */
static unsigned find_state(const struct options *options)
{
	bool bytes = options->format == DATA_BYTES;
	unsigned data = bytes ? STATE_BYTES : STATE_TOKENS;

	return (options->model == MODEL_TOY ? STATE_TOY : 0) |
	       (options->data ? data : 0) |
	       (options->optimizer == OPTIMIZER_SGD ? STATE_SGD :
						      STATE_ADAMW) |
	       (options->schedule == SCHEDULE_CONSTANT ? STATE_CONSTANT : 0) |
	       (options->deterministic ? STATE_DETERMINISTIC : STATE_LOOSE);
}

static int refuse_idle(const struct options *options, uint64_t given,
		       struct ddp_error *error)
{
	static const struct {
		enum option_state state;
		const char *why;
	} reasons[] = {
		{ STATE_TOY, "is of --model gpt, not toy; leave it out, or "
			     "train a gpt on --data FILE" },
		{ STATE_BYTES, "is of --tokens; the vocabulary of --data is "
			       "the 256 bytes" },
		{ STATE_TOKENS, "prints bytes; it needs --data, not "
				"--tokens" },
		{ STATE_ADAMW, "is SGD's; add --optimizer sgd" },
		{ STATE_SGD, "is AdamW's; add --optimizer adamw" },
		{ STATE_CONSTANT, "is where the learning rate falls to; add "
				  "--schedule cosine" },
		{ STATE_DETERMINISTIC, "does not go with --deterministic; "
				       "use --granule and --global-batch" },
		{ STATE_LOOSE, "is of --deterministic; add that" }
	};
	unsigned state = find_state(options);

	for (int row = 0; row < OPTIONS; row++) {
		unsigned idle = option_rows[row].idle & state;
		int i = 0;

		if (!idle || !is_given(given, row))
			continue;
		while (!(idle & reasons[i].state))
			i++;
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s %s",
				     option_rows[row].name, reasons[i].why);
	}
	return 0;
}

static int settle_model(struct options *options, uint64_t given,
			struct ddp_error *error)
{
	if (!is_given(given, OPT_MODEL) &&
	    (options->data || is_given(given, OPT_PRESET)))
		options->model = MODEL_GPT;
	if (is_given(given, OPT_DATA) && is_given(given, OPT_TOKENS))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--data and "
				     "--tokens are both given; leave one of "
				     "them out");
	if (options->model == MODEL_TOY)
		return 0;
	if (!options->data && !options->plan)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "a gpt needs "
				     "something to learn; name it by --data "
				     "FILE or --tokens FILE");
	if (is_given(given, OPT_TOKENS))
		options->format = DATA_TOKENS;
	if (options->format == DATA_BYTES && options->data)
		options->shape.vocab = 256;
	else if (!is_given(given, OPT_VOCAB))
		options->shape.vocab = options->data ? 50257 : 256;
	if (!options->preset)
		options->preset = "tiny";
	return gpt_complete_shape(&options->shape, options->preset, error);
}

static bool is_tiny(const struct options *options)
{
	return options->preset && strcmp(options->preset, "tiny") == 0;
}

/* The defaults that depend on what was given. */
static void settle_defaults(struct options *options, uint64_t given)
{
	bool gpt = options->model == MODEL_GPT;
	double lr = !gpt || is_tiny(options) ? 1e-3 : 6e-4;

	if (!is_given(given, OPT_OPTIMIZER) && gpt)
		options->optimizer = OPTIMIZER_ADAMW;
	if (!is_given(given, OPT_LR))
		options->lr = gpt && options->optimizer == OPTIMIZER_SGD ?
			      0.1 : lr;
	if (!is_given(given, OPT_SCHEDULE) && gpt)
		options->schedule = SCHEDULE_COSINE;
	if (!is_given(given, OPT_MIN_LR) &&
	    options->schedule == SCHEDULE_COSINE)
		options->min_lr = options->lr / 10;
	if (!is_given(given, OPT_WARMUP) && gpt)
		options->warmup = options->steps < 1000 ?
				  options->steps / 10 : 100;
	if (!is_given(given, OPT_DECAY) && gpt &&
	    options->optimizer == OPTIMIZER_ADAMW)
		options->decay = 0.1;
	if (!is_given(given, OPT_CLIP) && gpt)
		options->clip = 1;
}

int options_settle(struct options *options, uint64_t given,
		   struct ddp_error *error)
{
	if (settle_model(options, given, error) < 0)
		return -1;
	settle_defaults(options, given);
	if (refuse_idle(options, given, error) < 0)
		return -1;
	if (options->min_lr > options->lr)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--min-lr %g "
				     "is above --lr, %g; choose a smaller one",
				     options->min_lr, options->lr);
	if (options->eval_every > options->steps)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--eval-every %" PRIu64 " is above "
				     "--steps, %" PRIu64 "; choose a smaller "
				     "one", options->eval_every,
				     options->steps);
	if (options->warmup && options->warmup >= options->steps)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--warmup %"
				     PRIu64 " is not below --steps, %" PRIu64
				     "; choose a smaller one", options->warmup,
				     options->steps);
	return 0;
}

/* Of a power of two and the next one, the one that is nearer to number. */
static uint64_t nearest_power(uint64_t number)
{
	uint64_t power = 1;

	while (2 * power <= number)
		power *= 2;
	return number - power < 2 * power - number ? power : 2 * power;
}

static int complete_granules(struct options *options, uint64_t ranks,
			     struct ddp_error *error)
{
	uint64_t granule = options->granule, granules, nearest;

	if (ranks & (ranks - 1))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--deterministic needs a number of ranks "
				     "that is a power of two, not %" PRIu64
				     "; start %" PRIu64 " of them", ranks,
				     nearest_power(ranks));
	options->batch = granule;
	if (!options->global_batch)
		options->global_batch = granule * (ranks < 8 ? 8 : ranks);
	granules = options->global_batch / granule;
	if (options->global_batch % granule == 0 && granules >= ranks &&
	    (granules & (granules - 1)) == 0)
		return 0;
	nearest = nearest_power(granules ? granules : 1);
	nearest = nearest < ranks ? ranks : nearest;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--global-batch %"
			     PRIu64 " is not what --deterministic needs, "
			     "--granule %" PRIu64 " times a power of two that "
			     "is at least the number of ranks, %" PRIu64 "; "
			     "use --global-batch %" PRIu64,
			     options->global_batch, granule, ranks,
			     nearest * granule);
}

/* The multiple of unit that is nearest to number, and not 0. */
static uint64_t nearest_multiple(uint64_t number, uint64_t unit)
{
	uint64_t multiple = (number + unit / 2) / unit;

	return (multiple ? multiple : 1) * unit;
}

static int complete_batches(struct options *options, uint64_t ranks,
			    struct ddp_error *error)
{
	uint64_t total = options->global_batch, batch = options->batch;

	if (batch && total && total % (batch * ranks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--global-batch %" PRIu64 " is not a "
				     "multiple of --batch %" PRIu64 " times %"
				     PRIu64 " ranks; use --global-batch %"
				     PRIu64, total, batch, ranks,
				     nearest_multiple(total, batch * ranks));
	if (total % ranks)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--global-batch %" PRIu64 " does not "
				     "divide among %" PRIu64 " ranks; use "
				     "--global-batch %" PRIu64, total, ranks,
				     nearest_multiple(total, ranks));
	if (!batch) {
		batch = options->model == MODEL_TOY ? 64 :
			is_tiny(options) ? 16 : 8;
		while (total / ranks % batch)
			batch--;
	}
	options->batch = batch;
	options->global_batch = total ? total : batch * ranks;
	return 0;
}

int options_complete(struct options *options, int ranks,
		     struct ddp_error *error)
{
	return options->deterministic ?
	       complete_granules(options, (uint64_t)ranks, error) :
	       complete_batches(options, (uint64_t)ranks, error);
}
