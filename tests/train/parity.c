/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parity INPUT OUTPUT [MODULE [fp32|bf16|fp16]]: what a GPT computes on the
 * device of a module such as ddp_cuda.so, or of "cpu" (the default), for
 * parity.py, which wrote INPUT: an int32 header, tensors (name, count, values),
 * then tokens and targets of all batches. OUTPUT: the parameters that a run
 * would begin with; the logits of the first batch; its loss alone; its
 * gradient, at once and accumulated from two parts; losses of as many of the
 * trainer's own steps as there are batches, by AdamW and by SGD; float64
 * throughout.
 */
#include <stdlib.h>
#include <string.h>

#include "parity_test.h"
#include "run/train_options.h"
#include "step/trainer.h"

enum { SEED = 7 };

/* Sequences first .. first + count - 1 of all batches. */
static struct batch load(struct test *test, int first, int count)
{
	const struct device_table *table = test->device.table;
	size_t context = (size_t)test->header.context;
	size_t begin = (size_t)first * context;
	size_t rows = (size_t)count * context;
	const struct { int32_t *to; const int32_t *from; } copies[] = {
		{ test->tokens, test->all_tokens + begin },
		{ test->targets, test->all_targets + begin },
		{ test->rows, test->sorted }
	};

	order_by_token((int)rows, test->all_tokens + begin, test->sorted,
		       test->sorted + rows);
	for (int i = 0; i < 3; i++)
		table->copy(&test->device, QUEUE_COMPUTE, copies[i].to,
			    copies[i].from, rows * sizeof(int32_t));
	return (struct batch){ .sequences = count, .tokens = test->tokens,
			       .targets = test->targets, .order = test->rows };
}

/* Copy what is final to other[] when the callback is called. */
static void progress(void *context, size_t end)
{
	struct test *test = context;
	enum device_type type = test->device.type;

	if (end < test->final || end > test->model->param_count)
		die("progress", "went back, or too far");
	test->device.table->copy(&test->device, QUEUE_COMPUTE,
				 value_at(type, test->other, test->final),
				 value_at(type, test->grad, test->final),
				 (end - test->final) * device_type_bytes(type));
	test->final = end;
}

static struct backward create_backward(struct test *test)
{
	return (struct backward){
		.scale = 1.0 / test->header.sequences,
		.loss_scale = test->device.type == DEVICE_FP16 ?
			      &test->state->loss_scale : NULL,
		.progress = progress, .context = test
	};
}

static void gradient(struct test *test, int first, int count, bool accumulate)
{
	struct batch batch = load(test, first, count);
	struct backward backward = create_backward(test);

	backward.accumulate = accumulate;
	test->final = 0;
	test->model->gradient(test->model, &test->device, test->param, &batch,
			      &backward, test->grad, test->loss);
	if (test->final != test->model->param_count)
		die("progress", "did not come to the end");
	if (!are_same(test, test->grad, test->other, test->final))
		die("the gradient", "changed after it was said to be final");
}

static void put_loss(struct test *test)
{
	double loss;

	fetch(test, &loss, test->loss, sizeof(loss));
	put_double(test, loss);
}

static void initialise(struct test *test)
{
	const struct model *model = test->model;

	memset(test->values, 0x7f, model->param_count * sizeof(float));
	model->init(model, SEED, test->values);
	put_tensors(test, 1);
	for (int i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		size_t end = i + 1 < model->tensor_count ?
			     tensor[1].offset : model->param_count;

		for (size_t j = tensor->offset + tensor->count; j < end; j++)
			if (test->values[j] != 0)
				die("there is no 0 in the padding after",
				    tensor->name);
	}
}

static void restart(struct test *test)
{
	const struct device_table *table = test->device.table;
	struct step_state state = { .loss_scale = test->loss_scale };
	struct device *device = &test->device;
	size_t count = test->model->param_count;

	table->copy(device, QUEUE_COMPUTE, test->master, test->start,
		    count * sizeof(float));
	if (test->master != test->param)
		table->cast(device, device->type, test->param, DEVICE_FP32,
			    test->master, count);
	table->zero(device, test->grad,
		    count * device_type_bytes(device->type));
	table->zero(device, test->m, count * sizeof(float));
	table->zero(device, test->v, count * sizeof(float));
	table->copy(device, QUEUE_COMPUTE, test->state, &state, sizeof(state));
}

/* Earlier values must not matter. */
static void spoil_gradient(struct test *test)
{
	size_t bytes = test->model->param_count *
		       device_type_bytes(test->device.type);

	memset(test->values, 0x7f, bytes);
	test->device.table->copy(&test->device, QUEUE_COMPUTE, test->grad,
				 test->values, bytes);
}

/* From two parts; in 16 bit as the trainer does, by a sum of fp32. */
static void put_accumulated(struct test *test)
{
	const struct device_table *table = test->device.table;
	enum device_type type = test->device.type;
	size_t count = test->model->param_count;
	float *sum = test->sum;
	int rest = test->header.sequences - 1;

	gradient(test, 0, 1, false);
	if (type == DEVICE_FP32) {
		gradient(test, 1, rest, true);
		sum = test->grad;
	} else {
		table->cast(&test->device, DEVICE_FP32, sum, type, test->grad,
			    count);
		gradient(test, 1, rest, false);
		table->add(&test->device, sum, type, test->grad, count);
	}
	put_device_tensors(test, DEVICE_FP32, sum, 1 / test->loss_scale);
}

/*
 * What is kept for the backward pass, or computed again, has the same bits. But
 * in 16 bit a GPU may take a GELU of what is rounded only where it is kept:
 * then all that follows has other roundings, of 2^-9 each in bf16, 2^-12 in
 * fp16, which gradients have about four of.
 */
static bool agrees(struct test *test, const void *kept, const void *again)
{
	size_t count = test->model->param_count;
	enum device_type type = test->device.type;

	if (are_same(test, kept, again, count))
		return true;
	return type != DEVICE_FP32 && test->device.table != &device_cpu &&
	       measure_difference(test, kept, again, count) <=
	       (type == DEVICE_BF16 ? 0x1p-5 : 0x1p-8);
}

static void check_recompute(struct test *test)
{
	struct batch batch = load(test, 0, test->header.sequences);
	struct backward backward = create_backward(test);
	struct model *model = create_model(test, test->device.table !=
					   &device_cpu);

	backward.progress = NULL;
	model->gradient(model, &test->device, test->param, &batch, &backward,
			test->other, test->loss);
	if (!agrees(test, test->grad, test->other))
		die("the gradient", "is another one with --recompute");
	free(model);
}

static void compute_once(struct test *test)
{
	const struct header *header = &test->header;
	enum device_type type = test->device.type;
	struct backward alone = { .scale = 1.0 / header->sequences };
	struct batch batch;

	initialise(test);
	restart(test);
	spoil_gradient(test);
	batch = load(test, 0, header->sequences);
	test->model->logits(test->model, &test->device, test->param, &batch,
			    test->logits);
	put_values(test, type, test->logits, (size_t)header->sequences *
		   (size_t)header->context * (size_t)header->vocab, 1);
	test->model->gradient(test->model, &test->device, test->param, &batch,
			      &alone, NULL, test->loss);
	put_loss(test);
	gradient(test, 0, header->sequences, false);
	put_device_tensors(test, type, test->grad, 1 / test->loss_scale);
	check_recompute(test);
	put_accumulated(test);
}

static struct options options_of(const struct test *test,
				 const struct settings *settings)
{
	const struct header *header = &test->header;

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
		.clip = (double)settings->clip,
		.dtype = test->device.type, .grad_dtype = test->device.type
	};
}

/* All but the gradient by the trainer, which has other batches. */
static void train(struct test *test, const struct settings *settings)
{
	struct options options = options_of(test, settings);
	struct trainer trainer = {
		.options = &options, .model = test->model,
		.device = test->device, .grad = test->grad,
		.param = test->param, .master = test->master,
		.m = test->m, .v = test->v,
		.blocks = test->blocks, .state = test->state
	};

	trainer.buckets.type = test->device.type;
	if (buckets_create(&trainer.buckets, test->model->param_count,
			   1 << 20) < 0)
		die("memory", "there is too little");
	restart(test);
	for (int step = 1; step <= test->header.batches; step++) {
		gradient(test, (step - 1) * test->header.sequences,
			 test->header.sequences, false);
		put_loss(test);
		if (step == test->header.skipped)
			continue;
		trainer_finish_gradient(&trainer);
		trainer_update(&trainer, (uint64_t)step);
	}
	buckets_destroy(&trainer.buckets);
}

static enum device_type parse_type(const char *name)
{
	static const char *const names[] = { "fp32", "bf16", "fp16" };

	for (int type = DEVICE_FP32; type <= DEVICE_FP16; type++)
		if (strcmp(name, names[type]) == 0)
			return (enum device_type)type;
	die(name, "is no type");
}

int main(int argc, char **argv)
{
	struct test test = { 0 };

	if (argc < 3 || argc > 5)
		die("usage", "parity INPUT OUTPUT [MODULE [fp32|bf16|fp16]]");
	open_test(&test, argv + 1, argc > 3 ? argv[3] : "cpu",
		  parse_type(argc > 4 ? argv[4] : "fp32"));
	compute_once(&test);
	train(&test, &test.header.adamw);
	train(&test, &test.header.sgd);
	close_test(&test);
	return 0;
}
