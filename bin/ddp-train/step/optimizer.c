/* SPDX-License-Identifier: BSD-3-Clause */
/* The update of a step: learning rate, norm of the gradient, optimizer. */
#define _GNU_SOURCE
#include <math.h>

#include "collective.h"
#include "model.h"
#include "step/trainer.h"

double trainer_find_lr(const struct options *options, uint64_t step)
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

float *trainer_find_master(const struct trainer *trainer,
			   const struct bucket *bucket, size_t value)
{
	if (trainer->master == trainer->param)
		return trainer->master + value;
	return trainer->master + bucket_find_kept(bucket, value);
}

struct rounding trainer_find_rounding(const struct trainer *trainer,
				      size_t first)
{
	return (struct rounding){
		.stochastic = trainer->options->rounding == ROUNDING_STOCHASTIC,
		.seed = trainer->options->seed, .first = first
	};
}

/* The sums of the blocks that this rank updates. */
static void sum_squares(struct trainer *trainer)
{
	const struct buckets *buckets = &trainer->buckets;
	enum device_type type = trainer->options->grad_dtype;
	double *sums = trainer_find_sums(trainer);
	struct device *device = &trainer->device;

	for (int i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->list[i];
		struct range own = bucket->own;

		device->table->sum_squares(device, &(struct op_sum_squares){
			.count = own.end - own.begin, .type = type,
			.x = value_at(type, trainer->grad, own.begin),
			.blocks = sums + bucket->kept / DEVICE_BLOCK });
	}
}

void trainer_finish_gradient(struct trainer *trainer)
{
	const struct options *options = trainer->options;
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;

	sum_squares(trainer);
	if (trainer->buckets.sharded)
		trainer_gather_sums(trainer);
	device->table->step(device, &(struct op_step){
		.count = (count + DEVICE_BLOCK - 1) / DEVICE_BLOCK,
		.blocks = trainer->blocks, .order = trainer->order,
		.clip = options->clip,
		.beta1 = options->beta1, .beta2 = options->beta2,
		.dynamic = options->dtype == DEVICE_FP16,
		.state = trainer->state });
}

/* Values of a tensor that this rank has of a bucket. */
static void update_values(struct trainer *trainer, const struct bucket *bucket,
			  const struct tensor *tensor, struct range values,
			  uint64_t step)
{
	const struct options *options = trainer->options;
	struct device *device = &trainer->device;
	size_t count = values.end - values.begin;
	size_t kept = bucket_find_kept(bucket, values.begin);
	float *param = trainer_find_master(trainer, bucket, values.begin);
	void *copy = trainer->param == trainer->master ? NULL :
		     value_at(options->dtype, trainer->param, values.begin);
	const void *grad = value_at(options->grad_dtype, trainer->grad,
				      values.begin);
	float *v = trainer->v ? trainer->v + kept : NULL;
	double lr = trainer_find_lr(options, step);
	double decay = tensor->decay ? options->decay : 0;
	const struct rounding rounding = trainer_find_rounding(trainer,
							       values.begin);

	if (options->optimizer == OPTIMIZER_SGD)
		device->table->sgd(device, &(struct op_sgd){
			.count = count, .param = param, .copy = copy,
			.grad_type = options->grad_dtype, .grad = grad,
			.v = v, .lr = lr, .momentum = options->momentum,
			.decay = decay, .state = trainer->state,
			.rounding = rounding });
	else
		device->table->adamw(device, &(struct op_adamw){
			.count = count, .param = param, .copy = copy,
			.grad_type = options->grad_dtype, .grad = grad,
			.m = trainer->m + kept, .v = v, .lr = lr,
			.beta1 = options->beta1, .beta2 = options->beta2,
			.eps = options->eps, .decay = decay,
			.state = trainer->state, .rounding = rounding });
}

/* *next is the first tensor that does not end before the bucket. */
static void update_bucket(struct trainer *trainer, const struct bucket *bucket,
			  int *next, uint64_t step)
{
	const struct model *model = trainer->model;

	for (int i = *next; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];
		struct range values = { tensor->offset,
					tensor->offset + tensor->count };

		if (values.begin >= bucket->end)
			break;
		if (values.end <= bucket->end)
			*next = i + 1;
		values = buckets_intersect(values, bucket->own);
		if (values.begin < values.end)
			update_values(trainer, bucket, tensor, values, step);
	}
}

void trainer_update(struct trainer *trainer, uint64_t step)
{
	struct buckets *buckets = &trainer->buckets;
	int next = 0;

	for (int i = 0; i < buckets->count; i++) {
		update_bucket(trainer, &buckets->list[i], &next, step);
		if (buckets->sharded)
			trainer_start_gather(trainer, i);
	}
	if (buckets->sharded)
		trainer_wait_for_gathers(trainer);
}
