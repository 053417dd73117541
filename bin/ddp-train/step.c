/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <math.h>

#include "clock.h"
#include "collective.h"
#include "fold.h"
#include "model.h"
#include "trainer.h"

static int count_ones(unsigned int x)
{
	int ones = 0;

	for (; x; x &= x - 1)
		ones++;
	return ones;
}

/* Add the levels above `to` down into it, the highest first. */
static void add_levels(struct trainer *trainer, int from, int to,
		       size_t begin, size_t end)
{
	struct device *device = &trainer->device;

	for (int level = from; level > to; level--)
		device->table->add(device, trainer->levels[level - 1] + begin,
				   trainer->levels[level] + begin,
				   end - begin);
}

/* A bucket of the last chunk: what all chunks have of it becomes their sum. */
static void complete(void *context, size_t begin, size_t end)
{
	struct trainer *trainer = context;

	add_levels(trainer, trainer->level_count, 0, begin, end);
}

static void progress(void *context, size_t end)
{
	buckets_progress(context, end);
}

/* The gradient of the chunk that is `order`-th in the computation. */
static void chunk_gradient(struct trainer *trainer, uint64_t step, int order)
{
	bool last = order == trainer->chunks - 1;
	bool tree = trainer->options->deterministic;
	int level = tree ? count_ones((unsigned int)order) : 0;
	/* Of the levels, as many fold as order ends in ones. */
	int fold = tree ? level - count_ones((unsigned int)order + 1) + 1 : 0;
	struct backward backward = {
		.scale = 1 / (double)trainer->options->global_batch,
		.accumulate = !tree && order > 0,
		.progress = last ? progress : NULL,
		.context = &trainer->buckets
	};
	struct batch batch;

	trainer_load(trainer, step, order, &batch);
	trainer->model->gradient(trainer->model, &trainer->device,
				 trainer->param, &batch, &backward,
				 trainer->levels[level],
				 trainer->losses +
				 trainer_chunk_index(trainer, order));
	if (!last)
		add_levels(trainer, level, level - fold, 0,
			   trainer->model->param_count);
}

void trainer_gradient(struct trainer *trainer, uint64_t step,
		      struct share *share)
{
	struct device *device = &trainer->device;
	double begin = clock_seconds(), computed;

	trainer->buckets.complete = trainer->level_count ? complete : NULL;
	trainer->buckets.context = trainer;
	for (int order = 0; order < trainer->chunks; order++)
		chunk_gradient(trainer, step, order);
	computed = clock_seconds();
	buckets_finish(&trainer->buckets);
	share->busy = computed - begin;
	share->exposed = clock_seconds() - computed;
	device_fetch(device, trainer->host_losses, trainer->losses,
		     (size_t)trainer->chunks * sizeof(double));
	share->loss = fold_doubles(trainer->host_losses, trainer->chunks);
	share->norm = trainer_norm(trainer);
}

double trainer_lr(const struct options *options, uint64_t step)
{
	static const double pi = 3.141592653589793;
	double warm = (double)options->warmup, done;

	if (step <= options->warmup)
		return options->lr * (double)step / warm;
	if (options->schedule == SCHEDULE_CONSTANT ||
	    options->steps <= options->warmup + 1)
		return options->lr;
	done = (double)(step - options->warmup - 1) /
	       (double)(options->steps - options->warmup - 1);
	return options->lr - (options->lr - options->min_lr) *
	       (1 - cos(pi * done)) / 2;
}

double trainer_norm(struct trainer *trainer)
{
	struct device *device = &trainer->device;
	struct op_sum_squares op = {
		.count = trainer->model->param_count,
		.x = trainer->levels[0], .blocks = trainer->blocks
	};
	size_t count = (op.count + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
	double sum = 0;

	device->table->sum_squares(device, &op);
	device_fetch(device, trainer->host_blocks, trainer->blocks,
		     count * sizeof(double));
	for (size_t i = 0; i < count; i++)
		sum += trainer->host_blocks[i];
	return sqrt(sum);
}

static void update_tensor(struct trainer *trainer, const struct tensor *tensor,
			  uint64_t step, double scale)
{
	const struct options *options = trainer->options;
	struct device *device = &trainer->device;
	float *param = trainer->param + tensor->offset;
	const float *grad = trainer->levels[0] + tensor->offset;
	float *v = trainer->v ? trainer->v + tensor->offset : NULL;
	double lr = trainer_lr(options, step);
	double decay = tensor->decay ? options->decay : 0;
	double updates = (double)trainer->updates;

	if (options->optimizer == OPTIMIZER_SGD)
		device->table->sgd(device, &(struct op_sgd){
			.count = tensor->count, .param = param, .grad = grad,
			.v = v, .lr = lr, .momentum = options->momentum,
			.decay = decay, .scale = scale });
	else
		device->table->adamw(device, &(struct op_adamw){
			.count = tensor->count, .param = param, .grad = grad,
			.m = trainer->m + tensor->offset, .v = v, .lr = lr,
			.beta1 = options->beta1, .beta2 = options->beta2,
			.eps = options->eps, .decay = decay, .scale = scale,
			.correction1 = 1 - pow(options->beta1, updates),
			.correction2 = 1 - pow(options->beta2, updates) });
}

void trainer_update(struct trainer *trainer, uint64_t step, double norm)
{
	const struct model *model = trainer->model;
	double clip = trainer->options->clip;
	/* As torch.nn.utils.clip_grad_norm_ does. */
	double scale = clip > 0 && norm + 1e-6 > clip ? clip / (norm + 1e-6) :
							1;

	trainer->updates++;
	for (int i = 0; i < model->tensor_count; i++)
		update_tensor(trainer, &model->tensors[i], step, scale);
}
