/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the command line, and settles the options together: defaults that
 * follow, and contradictions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "run/module.h"
#include "run/predict.h"
#include "run/train_options.h"
#include "util/error.h"

enum { FOLDER_MAX = 1000 };	/* bytes of --checkpoint */

static bool is_given(uint64_t given, enum option_name name)
{
	return given >> name & 1;
}

/* Returns the set of states that are true of a run with these options. */
static unsigned find_state(const struct options *options)
{
	bool bytes = options->format == DATA_BYTES;
	unsigned data = bytes ? STATE_BYTES : STATE_TOKENS;

	return (options->model == MODEL_TOY ? STATE_TOY : 0) |
	       (options->data ? data : 0) |
	       (options->optimizer == OPTIMIZER_SGD ? STATE_SGD :
						      STATE_ADAMW) |
	       (options->schedule == SCHEDULE_CONSTANT ? STATE_CONSTANT : 0) |
	       (options->deterministic ? STATE_DETERMINISTIC : STATE_LOOSE) |
	       (options->checkpoint ? 0 : STATE_UNSAVED);
}

static int refuse_idle(const struct options *options, uint64_t given,
		       struct ddp_error *error)
{
	static const struct {
		enum option_state state;
		const char *why;
	} reasons[] = {
		{ STATE_TOY, "has no effect on --model toy; leave it out, or "
			     "train a gpt on --data FILE" },
		{ STATE_BYTES, "has no effect with --data, whose vocabulary "
			       "is the 256 bytes; leave it out" },
		{ STATE_TOKENS, "prints bytes, not tokens; use "
				"--data" },
		{ STATE_ADAMW, "is an option of SGD; add --optimizer sgd" },
		{ STATE_SGD, "is an option of AdamW; add --optimizer adamw" },
		{ STATE_CONSTANT, "is where a falling learning rate ends; add "
				  "--schedule cosine" },
		{ STATE_DETERMINISTIC, "does not go with --deterministic; "
				       "use --granule and --global-batch" },
		{ STATE_LOOSE, "has no effect without --deterministic; add "
			       "that" },
		{ STATE_UNSAVED, "has no effect without --checkpoint; name a "
				 "folder by that" }
	};
	unsigned state = find_state(options);

	for (int row = 0; row < OPTIONS; row++) {
		unsigned idle = train_options.rows[row].mark & state;
		int i = 0;

		if (!idle || !is_given(given, row))
			continue;
		while (!(idle & reasons[i].state))
			i++;
		if (options->from && reasons[i].state == STATE_TOY)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "--resume: the checkpoint in %s "
					     "is of --model toy, on which --%s "
					     "has no effect; name another "
					     "--checkpoint",
					     options->checkpoint,
					     train_options.rows[row].name);
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s %s",
				     train_options.rows[row].name,
				     reasons[i].why);
	}
	return 0;
}

/* A new run that is to be saved learns what it was told to learn. */
static int refuse_forgotten(const struct options *options, uint64_t given,
			    struct ddp_error *error)
{
	if (!options->checkpoint || options->from ||
	    is_given(given, OPT_MODEL))
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint is given "
			     "without data; name what to learn by --data FILE "
			     "or --tokens FILE, or add --model toy to save "
			     "the toy");
}

static int settle_model(struct options *options, uint64_t given,
			struct ddp_error *error)
{
	if (!is_given(given, OPT_MODEL) &&
	    (options->data || options->preset || options->init))
		options->model = MODEL_GPT;
	if (is_given(given, OPT_DATA) && is_given(given, OPT_TOKENS))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--data and "
				     "--tokens are both given; leave one of "
				     "them out");
	if (options->model == MODEL_TOY)
		return refuse_forgotten(options, given, error);
	if (!options->data && !options->plan)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "a gpt needs "
				     "something to learn; name it by --data "
				     "FILE or --tokens FILE");
	if (options->init && options->preset)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--init and "
				     "--preset are both given, and the file "
				     "has its own size; leave --preset out");
	if (is_given(given, OPT_TOKENS))
		options->format = DATA_TOKENS;
	if (options->format == DATA_BYTES && options->data)
		options->shape.vocab = 256;
	else if (!is_given(given, OPT_VOCAB) && !options->init)
		options->shape.vocab = options->data ? 50257 : 256;
	/* The file has the rest; it is not opened before the ranks meet. */
	if (options->init)
		return 0;
	/* A checkpoint of a run that began with --init has all sizes. */
	if (!options->preset && options->from && is_given(given, OPT_LAYERS))
		return gpt_complete_shape(&options->shape, "tiny", error);
	if (!options->preset)
		options->preset = "tiny";
	return gpt_complete_shape(&options->shape, options->preset, error);
}

static bool is_tiny(const struct options *options)
{
	return options->preset && strcmp(options->preset, "tiny") == 0;
}

static int check_rounding(const struct options *options,
			  struct ddp_error *error)
{
	if (options->rounding == ROUNDING_NEAREST ||
	    options->dtype == DEVICE_BF16)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--rounding stochastic "
			     "rounds parameters to bf16, not to %s; leave it "
			     "out, or use --dtype bf16",
			     train_options.rows[OPT_DTYPE].words[
				     options->dtype]);
}

static int check_tf32(const struct options *options, struct ddp_error *error)
{
	if (!options->tf32 || options->dtype == DEVICE_FP32)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--tf32 on is how "
			     "fp32 is multiplied, not %s; leave it out, or "
			     "use --dtype fp32",
			     train_options.rows[OPT_DTYPE].words[
				     options->dtype]);
}

static int check_attention(const struct options *options,
			   struct ddp_error *error)
{
	if (options->attention == ATTENTION_OWN ||
	    options->dtype != DEVICE_FP32)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--attention cudnn "
			     "computes in 16 bit, not in fp32; leave it out, "
			     "or use --dtype bf16");
}

/* Gradients have the run's type, or fp32, which --deterministic needs. */
static int settle_types(struct options *options, uint64_t given,
			uint64_t recalled, struct ddp_error *error)
{
	const char *const *words = train_options.rows[OPT_DTYPE].words;
	const char *word;

	if (!is_given(given | recalled, OPT_GRAD_DTYPE) &&
	    !options->deterministic)
		options->grad_dtype = options->dtype;
	word = words[options->grad_dtype];
	if (options->grad_dtype == DEVICE_FP32)
		return 0;
	if (options->deterministic && is_given(recalled, OPT_GRAD_DTYPE))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--resume: "
				     "--deterministic does not go with the "
				     "checkpoint's --grad-dtype %s; leave it "
				     "out, or train anew into another "
				     "--checkpoint", word);
	if (options->deterministic)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--grad-dtype "
				     "%s does not go with --deterministic, "
				     "whose gradients are fp32; leave it out",
				     word);
	if (options->grad_dtype != options->dtype)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--grad-dtype "
				     "%s is neither fp32 nor --dtype %s; "
				     "leave it out, or use --dtype %s", word,
				     words[options->dtype], word);
	return 0;
}

/* The row takes ZeRO's other stages, so that this can say what there is. */
static int check_stage(const struct options *options, struct ddp_error *error)
{
	if (options->zero <= 1)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--zero %" PRIu64 " is "
			     "not there: the ranks can share the optimizer, "
			     "--zero 1, but not gradients or parameters; use "
			     "--zero 1", options->zero);
}

/* All ranks compare it, with the other options. */
static int check_folder(const struct options *options, struct ddp_error *error)
{
	const char *dir = options->checkpoint;

	if (!dir || strlen(dir) <= FOLDER_MAX)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint has a "
			     "name of %zu bytes; choose one of at most %d",
			     strlen(dir), FOLDER_MAX);
}

/* Set the defaults that depend on what was given. */
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

/* An option that is too large, and which other one may be the wrong one. */
static int refuse_above(uint64_t recalled, enum option_name name,
			const char *value, const char *what,
			const char *other, struct ddp_error *error)
{
	const char *row = train_options.rows[name].name;

	if (is_given(recalled, name))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s %s, "
				     "which is that of the checkpoint, is %s; "
				     "choose a larger %s, or give a smaller --%s",
				     row, value, what, other, row);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--%s %s is %s; "
			     "choose a smaller one", row, value, what);
}

static int refuse_large(const struct options *options, uint64_t recalled,
			struct ddp_error *error)
{
	char value[32], what[64];

	if (options->min_lr > options->lr) {
		snprintf(value, sizeof(value), "%g", options->min_lr);
		snprintf(what, sizeof(what), "above --lr, %g", options->lr);
		return refuse_above(recalled, OPT_MIN_LR, value, what, "--lr",
				    error);
	}
	if (options->eval_every > options->steps) {
		snprintf(value, sizeof(value), "%" PRIu64,
			 options->eval_every);
		snprintf(what, sizeof(what), "above --steps, %" PRIu64,
			 options->steps);
		return refuse_above(recalled, OPT_EVAL_EVERY, value, what,
				    "--steps", error);
	}
	if (options->warmup && options->warmup >= options->steps) {
		snprintf(value, sizeof(value), "%" PRIu64, options->warmup);
		snprintf(what, sizeof(what), "not below --steps, %" PRIu64,
			 options->steps);
		return refuse_above(recalled, OPT_WARMUP, value, what,
				    "--steps", error);
	}
	return 0;
}

static int check_gpu(const struct options *options, struct ddp_error *error)
{
	if (!options->gpu)
		return 0;
	if (!options->plan)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--gpu says for "
				     "what GPU --plan predicts a step; add "
				     "--plan, or leave it out");
	if (rates_find(options->gpu))
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "what --gpu '%s' can "
			     "do is not known; choose one of %s", options->gpu,
			     rates_names());
}

/*
 * Sets each option to its default that was neither given nor recalled from a
 * checkpoint; bit i of either stands for row i.
 */
static int settle(struct options *options, uint64_t given, uint64_t recalled,
		  struct ddp_error *error)
{
	if (settle_model(options, given | recalled, error) < 0)
		return -1;
	settle_defaults(options, given | recalled);
	if (check_stage(options, error) < 0 ||
	    check_folder(options, error) < 0 ||
	    check_gpu(options, error) < 0 ||
	    check_rounding(options, error) < 0 ||
	    check_tf32(options, error) < 0 ||
	    check_attention(options, error) < 0 ||
	    refuse_idle(options, given, error) < 0 ||
	    settle_types(options, given, recalled, error) < 0)
		return -1;
	return refuse_large(options, recalled, error);
}

/*
 * The same of what the device decides, once that is chosen. A plan for a GPU by
 * name is made anywhere.
 */
static int settle_device(struct options *options, uint64_t given,
			 struct ddp_error *error)
{
	const char *option = is_given(given, OPT_TF32) && options->tf32 ?
			     "--tf32 on" :
			     is_given(given, OPT_ATTENTION) &&
			     options->attention == ATTENTION_CUDNN ?
			     "--attention cudnn" : NULL;

	if (options->device == COMPUTE_CUDA || options->gpu)
		return 0;
	if (option)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is for "
				     "GPUs, and this rank computes on its "
				     "CPUs; leave it out", option);
	options->tf32 = false;
	options->attention = ATTENTION_OWN;
	return 0;
}

int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error)
{
	struct options parsed = train_defaults;
	uint64_t given = 0, recalled = 0;
	int result = tool_options_parse(&train_options, argc, argv, &parsed,
					&given, error);

	if (result == 0 && !parsed.help && !parsed.version) {
		if (parsed.checkpoint)
			result = signals_catch(error);
		if (result == 0 && parsed.resume && parsed.checkpoint)
			result = checkpoint_recall(&parsed, given, &recalled,
						   error);
		/* A resumed run does not begin with its checkpoint's --init. */
		if (parsed.from)
			parsed.init = NULL;
		if (result == 0)
			result = settle(&parsed, given, recalled, error);
	}
	/* The first error is the one to report. */
	if (!parsed.help && !parsed.version &&
	    module_choose_device(&parsed, result == 0 ? error : NULL) < 0)
		result = -1;
	if (result == 0)
		result = settle_device(&parsed, given, error);
	if (result < 0)
		checkpoint_free_manifest(parsed.from);
	*options = result == 0 ? parsed : train_defaults;
	options->device = parsed.device;
	options->backend = parsed.backend;
	return result;
}

/* ---- the batch, once the number of ranks is known */

/* The power of two that is nearest to number. */
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
	if (options->from)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--resume: the checkpoint's "
				     "--global-batch %" PRIu64 " has %" PRIu64
				     " granule%s, too few for %" PRIu64
				     " ranks; start at most %" PRIu64 " of "
				     "them", options->global_batch, granules,
				     granules == 1 ? "" : "s", ranks, granules);
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

/* The multiple of unit, other than 0, that is nearest to number. */
static uint64_t nearest_multiple(uint64_t number, uint64_t unit)
{
	uint64_t multiple = (number + unit / 2) / unit;

	return (multiple ? multiple : 1) * unit;
}

static int complete_batches(struct options *options, uint64_t ranks,
			    struct ddp_error *error)
{
	uint64_t total = options->global_batch, batch = options->batch;

	if (batch && total % (batch * ranks) && options->from)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--resume: --batch %" PRIu64 " on %"
				     PRIu64 " rank%s does not divide the "
				     "checkpoint's --global-batch %" PRIu64
				     "; leave --batch out", batch, ranks,
				     ranks == 1 ? "" : "s", total);
	if (batch && total % (batch * ranks))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--global-batch %" PRIu64 " is not a "
				     "multiple of --batch %" PRIu64 " times %"
				     PRIu64 " rank%s; use --global-batch %"
				     PRIu64, total, batch, ranks,
				     ranks == 1 ? "" : "s",
				     nearest_multiple(total, batch * ranks));
	if (total % ranks && options->from)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--resume: the checkpoint's "
				     "--global-batch %" PRIu64 " does not "
				     "divide among %" PRIu64 " ranks; start "
				     "a number of ranks that divides it",
				     total, ranks);
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
