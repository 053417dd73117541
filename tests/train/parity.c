/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parity INPUT OUTPUT: what a GPT computes on the CPU, for parity.py, which
 * wrote INPUT: an int32 header, tensors (name, count, values), then tokens and
 * targets of all batches. OUTPUT: the parameters that a run would begin with;
 * the logits of the first batch; its loss alone; its gradient, at once and
 * accumulated from two parts; losses of as many of the trainer's own steps as
 * there are batches, by AdamW and by SGD; float64 throughout.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp_error.h"
#include "model.h"
#include "train_options.h"
#include "trainer.h"

enum { SEED = 7 };

struct settings {
	float lr, min_lr, beta1, beta2, eps, momentum, decay, clip;
};

struct header {
	int32_t layers, heads, width, context, vocab;
	int32_t sequences, batches, tensors;
	int32_t warmup, skipped;	/* a step without an update */
	struct settings adamw, sgd;
};

struct test {
	struct header header;
	struct model *model;
	struct device device;
	FILE *in, *out;
	size_t used;			/* bytes of the device's arena */
	int order[1024];		/* tensors of the input, by the model's
					   numbers */
	float *start, *param, *grad, *other, *m, *v, *logits;
	int32_t *tokens, *targets;	/* [batches][sequences][context] */
	double *loss, *blocks;
	struct step_state *state;
	size_t final;			/* floats that are final */
};

static void die(const char *text, const char *what)
{
	fprintf(stderr, "parity: %s: %s\n", text, what);
	exit(2);
}

static void get(struct test *test, void *to, size_t bytes)
{
	if (fread(to, 1, bytes, test->in) != bytes)
		die("the input ends early", "see parity.py");
}

static void put(struct test *test, const float *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double value = (double)values[i];

		if (fwrite(&value, sizeof(value), 1, test->out) != 1)
			die("the output", "cannot be written");
	}
}

static void put_double(struct test *test, double value)
{
	if (fwrite(&value, sizeof(value), 1, test->out) != 1)
		die("the output", "cannot be written");
}

static void *take(struct test *test, size_t bytes)
{
	char *begin = test->device.arena[SPACE_DEVICE] + test->used;

	test->used += (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
	return begin;
}

static void open_model(struct test *test)
{
	const struct header *header = &test->header;
	struct model_shape shape = {
		(uint64_t)header->layers, (uint64_t)header->heads,
		(uint64_t)header->width, (uint64_t)header->context,
		(uint64_t)header->vocab
	};
	size_t rows = (size_t)header->sequences * (size_t)header->context;
	size_t all = (size_t)header->batches * rows * sizeof(int32_t);
	size_t logits = rows * (size_t)header->vocab * sizeof(float);
	size_t bytes[SPACES] = { 0 }, param, blocks;
	struct ddp_error error;

	test->device.table = &device_cpu;
	if (gpt_complete_shape(&shape, "tiny", &error) < 0)
		die("gpt_complete_shape", error.text);
	test->model = gpt_create(&shape, header->sequences, &device_cpu,
				 DEVICE_FP32, true, &error);
	if (!test->model)
		die("gpt_create", error.text);
	param = test->model->param_count * sizeof(float);
	blocks = (test->model->param_count / DEVICE_BLOCK + 1) *
		 sizeof(*test->blocks);
	bytes[SPACE_DEVICE] = test->model->bytes[SPACE_DEVICE] + 6 * param +
			      logits + 2 * all + 2 * blocks +
			      16 * DEVICE_ALIGN;
	if (device_cpu.open(&test->device, DEVICE_FP32, bytes, 1, &error) < 0)
		die("open", error.text);
	test->model->memory[SPACE_DEVICE] =
		take(test, test->model->bytes[SPACE_DEVICE]);
	test->start = take(test, param);
	test->param = take(test, param);
	test->grad = take(test, param);
	test->other = take(test, param);
	test->m = take(test, param);
	test->v = take(test, param);
	test->logits = take(test, logits);
	test->tokens = take(test, all);
	test->targets = take(test, all);
	test->loss = take(test, sizeof(double));
	test->blocks = take(test, blocks);
	test->state = take(test, sizeof(*test->state));
}

static int find(const struct test *test, const char *name, size_t count)
{
	for (int i = 0; i < test->model->tensor_count; i++) {
		const struct tensor *tensor = &test->model->tensors[i];

		if (strcmp(tensor->name, name) == 0 && tensor->count == count)
			return i;
	}
	die("the model has no such tensor", name);
	return -1;
}

static void read_input(struct test *test)
{
	size_t tokens;

	if (test->header.tensors != test->model->tensor_count)
		die("the model", "has another number of tensors");
	for (int i = 0; i < test->header.tensors; i++) {
		char name[32];
		int32_t count;

		get(test, name, sizeof(name));
		get(test, &count, sizeof(count));
		test->order[i] = find(test, name, (size_t)count);
		get(test, test->start +
		    test->model->tensors[test->order[i]].offset,
		    (size_t)count * sizeof(float));
	}
	tokens = (size_t)test->header.batches *
		 (size_t)test->header.sequences * (size_t)test->header.context;
	get(test, test->tokens, tokens * sizeof(int32_t));
	get(test, test->targets, tokens * sizeof(int32_t));
}

/* Sequences first .. first + count - 1 of all batches. */
static struct batch sequences(const struct test *test, int first, int count)
{
	size_t begin = (size_t)first * (size_t)test->header.context;

	return (struct batch){ .sequences = count,
			       .tokens = test->tokens + begin,
			       .targets = test->targets + begin };
}

/* Copy what is final to other[] when the callback is called. */
static void progress(void *context, size_t end)
{
	struct test *test = context;

	if (end < test->final || end > test->model->param_count)
		die("progress", "went back, or too far");
	memcpy(test->other + test->final, test->grad + test->final,
	       (end - test->final) * sizeof(float));
	test->final = end;
}

static void gradient(struct test *test, int first, int count, bool accumulate)
{
	struct batch batch = sequences(test, first, count);
	struct backward backward = {
		.scale = 1.0 / test->header.sequences,
		.accumulate = accumulate, .progress = progress, .context = test
	};

	test->final = 0;
	test->model->gradient(test->model, &test->device, test->param, &batch,
			      &backward, test->grad, test->loss);
	if (test->final != test->model->param_count)
		die("progress", "did not come to the end");
	if (memcmp(test->grad, test->other,
		   test->final * sizeof(float)) != 0)
		die("the gradient", "changed after it was said to be final");
}

/* By the input's order. */
static void put_tensors(struct test *test, const float *values)
{
	for (int i = 0; i < test->header.tensors; i++) {
		const struct tensor *tensor =
			&test->model->tensors[test->order[i]];

		put(test, values + tensor->offset, tensor->count);
	}
}

static void initialise(struct test *test)
{
	const struct model *model = test->model;

	memset(test->param, 0x7f, model->param_count * sizeof(float));
	model->init(model, SEED, test->param);
	put_tensors(test, test->param);
	for (int i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		size_t end = i + 1 < model->tensor_count ?
			     tensor[1].offset : model->param_count;

		for (size_t j = tensor->offset + tensor->count; j < end; j++)
			if (test->param[j] != 0)
				die("there is no 0 in the padding after",
				    tensor->name);
	}
}

static void restart(struct test *test)
{
	size_t bytes = test->model->param_count * sizeof(float);

	memcpy(test->param, test->start, bytes);
	memset(test->grad, 0, bytes);
	memset(test->m, 0, bytes);
	memset(test->v, 0, bytes);
	*test->state = (struct step_state){ .loss_scale = 1 };
}

static void compute_once(struct test *test)
{
	const struct header *header = &test->header;
	struct batch batch = sequences(test, 0, header->sequences);

	initialise(test);
	restart(test);
	/* Earlier values must not matter. */
	memset(test->grad, 0x7f, test->model->param_count * sizeof(float));
	test->model->logits(test->model, &test->device, test->param, &batch,
			    test->logits);
	put(test, test->logits, (size_t)header->sequences *
	    (size_t)header->context * (size_t)header->vocab);
	test->model->gradient(test->model, &test->device, test->param, &batch,
			      &(struct backward){ .scale = 1.0 /
						  header->sequences },
			      NULL, test->loss);
	put_double(test, *test->loss);
	gradient(test, 0, header->sequences, false);
	put_tensors(test, test->grad);
	gradient(test, 0, 1, false);
	gradient(test, 1, header->sequences - 1, true);
	put_tensors(test, test->grad);
}

static struct options options_of(const struct header *header,
				 const struct settings *settings)
{
	return (struct options){
		.optimizer = settings == &header->sgd ? OPTIMIZER_SGD :
							OPTIMIZER_ADAMW,
		.schedule = SCHEDULE_COSINE,
		.steps = (uint64_t)header->batches,
		.warmup = (uint64_t)header->warmup,
		.lr = (double)settings->lr,
		.min_lr = (double)settings->min_lr,
		.beta1 = (double)settings->beta1,
		.beta2 = (double)settings->beta2,
		.eps = (double)settings->eps,
		.momentum = (double)settings->momentum,
		.decay = (double)settings->decay,
		.clip = (double)settings->clip
	};
}

/* All but the gradient by the trainer, which has other batches. */
static void train(struct test *test, const struct settings *settings)
{
	struct options options = options_of(&test->header, settings);
	struct trainer trainer = {
		.options = &options, .model = test->model,
		.device = test->device, .grad = test->grad,
		.param = test->param, .master = test->param,
		.m = test->m, .v = test->v,
		.blocks = test->blocks, .state = test->state
	};

	if (buckets_create(&trainer.buckets, test->model->param_count,
			   1 << 20) < 0)
		die("memory", "there is too little");
	restart(test);
	for (int step = 1; step <= test->header.batches; step++) {
		gradient(test, (step - 1) * test->header.sequences,
			 test->header.sequences, false);
		put_double(test, *test->loss);
		if (step == test->header.skipped)
			continue;
		trainer_finish_gradient(&trainer);
		trainer_update(&trainer, (uint64_t)step);
	}
	buckets_destroy(&trainer.buckets);
}

int main(int argc, char **argv)
{
	struct test test = { 0 };

	if (argc != 3 || !(test.in = fopen(argv[1], "rb")) ||
	    !(test.out = fopen(argv[2], "wb")))
		die("usage", "parity INPUT OUTPUT");
	get(&test, &test.header, sizeof(test.header));
	open_model(&test);
	read_input(&test);
	compute_once(&test);
	train(&test, &test.header.adamw);
	train(&test, &test.header.sgd);
	fclose(test.in);
	if (fclose(test.out) != 0)
		die("the output", "cannot be written");
	device_cpu.close(&test.device);
	free(test.model);
	return 0;
}
