/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the command line of ddp-train. The input is a byte for the number of
 * ranks, then a line for each argument. The passes of the model are stubs, and
 * there is never a checkpoint or a GPU.
 */
#include <math.h>

#include "checkpoint/checkpoint.h"
#include "fuzz.h"
#include "fuzz_arguments.h"
#include "model/gpt.h"
#include "run/module.h"
#include "run/train_options.h"

enum { TEXT_SIZE = 4096 };

void gpt_compute_gradient(const struct model *model, struct device *device,
			  const void *param, const struct batch *batch,
			  const struct backward *backward, void *grad,
			  double *loss)
{
	(void)model, (void)device, (void)param, (void)batch, (void)backward;
	(void)grad, (void)loss;
	abort();
}

void gpt_compute_logits(const struct model *model, struct device *device,
			const void *param, const struct batch *batch,
			void *logits)
{
	(void)model, (void)device, (void)param, (void)batch, (void)logits;
	abort();
}

int checkpoint_recall(struct options *options, uint64_t given,
		      uint64_t *recalled, struct ddp_error *error)
{
	(void)options, (void)given, (void)recalled, (void)error;
	return 0;
}

/* As on a machine without a GPU, but for what is refused there. */
int module_choose_device(struct options *options, struct ddp_error *error)
{
	(void)error;
	if (options->device == COMPUTE_AUTO)
		options->device = COMPUTE_CPU;
	return 0;
}

int signals_catch(struct ddp_error *error)
{
	(void)error;
	return 0;
}

void checkpoint_free_manifest(struct manifest *manifest)
{
	CHECK(!manifest);
}

static void check_ranges(const struct options *options)
{
	CHECK(options->steps >= 1 && options->steps <= 1000000000);
	CHECK(options->lr > 0 && isfinite(options->lr));
	CHECK(options->min_lr >= 0 && options->min_lr <= options->lr);
	CHECK(options->warmup == 0 || options->warmup < options->steps);
	CHECK(options->beta1 >= 0 && options->beta1 < 1);
	CHECK(options->beta2 >= 0 && options->beta2 < 1);
	CHECK(options->eps > 0 && isfinite(options->eps));
	CHECK(options->momentum >= 0 && options->momentum < 1);
	CHECK(options->decay >= 0 && isfinite(options->decay));
	CHECK(options->clip >= 0 && isfinite(options->clip));
	CHECK(options->bucket_bytes >= 1 &&
	      options->bucket_bytes <= 1024ull << 20);
	CHECK(options->granule >= 1 && options->max_bad_steps >= 1);
	CHECK(options->eval_every <= options->steps);
	CHECK(!options->data || *options->data != '\0');
	CHECK(!options->log || *options->log != '\0');
	CHECK(!options->checkpoint || *options->checkpoint != '\0');
	CHECK(options->checkpoint || !options->resume);
	CHECK(options->keep >= 1);
	if (options->model != MODEL_GPT)
		return;
	CHECK(options->data || options->plan);
	CHECK(!options->init != !options->preset);
	if (options->init)
		return;
	CHECK(options->shape.heads >= 1 && options->shape.layers >= 1);
	CHECK(options->shape.width % options->shape.heads == 0);
	CHECK(options->shape.vocab >= 1 && options->shape.context >= 1);
}

/* Lines "--name value", which all ranks compare. */
static void check_description(const struct options *options)
{
	char text[TEXT_SIZE], *rest = text;
	size_t length = tool_options_describe(&train_options, options, text,
					      sizeof(text));

	CHECK(length < sizeof(text) && strlen(text) == length);
	while (*rest != '\0') {
		CHECK(strncmp(rest, "--", 2) == 0 && strchr(rest, ' '));
		CHECK(strchr(rest, '\n'));
		fuzz_next_line(&rest);
	}
	CHECK(tool_options_describe(&train_options, options, text, length) ==
	      length);
}

static void check_complete(struct options *options, int ranks)
{
	struct ddp_error error = { 0 };

	if (options_complete(options, ranks, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	CHECK(options->batch >= 1 && options->global_batch >= 1);
	CHECK(options->global_batch % (options->batch * (uint64_t)ranks) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char program[] = "ddp-train", *argv[FUZZ_ARGUMENTS_MAX + 1], *text;
	struct ddp_error error = { 0 };
	struct options options;
	int argc;

	if (size == 0)
		return 0;
	text = fuzz_text(data + 1, size - 1);
	argc = fuzz_arguments(text, program, argv);
	if (options_parse(&options, argc, argv, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		CHECK(!options.data && !options.log && options.steps == 100);
	} else if (!options.help && !options.version) {
		check_ranges(&options);
		check_description(&options);
		check_complete(&options, data[0] + 1);
	}
	free(text);
	return 0;
}
