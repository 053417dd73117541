/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The update of a step: learning rate, norm of the gradient, optimizer; and the
 * exchange of ranks that each update a part, --zero 1.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "collective.h"
#include "model.h"
#include "step/trainer.h"
#include "util/error.h"

/* ---- the exchange of --zero 1 */

/* Sums are gathered as floats, in slices of whole blocks. */
enum { SUM_FLOATS = sizeof(double) / sizeof(float),
       SUMS_UNIT = DEVICE_BLOCK / SUM_FLOATS };

static size_t count_blocks(struct range range)
{
	return (range.end - range.begin + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
}

/* The room of each rank. No rank has longer slices than rank 0. */
static size_t count_room(const struct trainer *trainer)
{
	const struct buckets *buckets = &trainer->buckets;
	size_t sums = 0;

	for (int i = 0; i < buckets->count; i++)
		sums += count_blocks(buckets_find_slice(buckets, i, 0));
	return (sums + SUMS_UNIT - 1) / SUMS_UNIT * SUMS_UNIT;
}

size_t trainer_count_sums(const struct trainer *trainer)
{
	if (!trainer->buckets.sharded)
		return 0;
	return count_room(trainer) * (size_t)trainer->collective->size;
}

/* This rank writes its own sums of squares there. */
static double *find_sums(const struct trainer *trainer)
{
	if (!trainer->buckets.sharded)
		return trainer->blocks;
	return trainer->blocks +
	       count_room(trainer) * (size_t)trainer->collective->rank;
}

int trainer_order_sums(struct trainer *trainer, struct ddp_error *error)
{
	const struct buckets *buckets = &trainer->buckets;
	struct device *device = &trainer->device;
	struct range all = { 0, trainer->model->param_count };
	size_t room = count_room(trainer);
	uint32_t *order = malloc(count_blocks(all) * sizeof(*order));

	if (!order)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "the order of blocks; train a smaller "
				     "model");
	for (int rank = 0; rank < trainer->collective->size; rank++) {
		size_t sum = (size_t)rank * room;

		for (int i = 0; i < buckets->count; i++) {
			struct range slice = buckets_find_slice(buckets, i,
								rank);
			size_t first = slice.begin / DEVICE_BLOCK;

			for (size_t j = 0; j < count_blocks(slice); j++)
				order[first + j] = (uint32_t)sum++;
		}
	}
	device->table->copy(device, QUEUE_COMPUTE, trainer->order, order,
			    count_blocks(all) * sizeof(*order));
	free(order);
	return 0;
}

/* Gives all ranks this one's sums. */
static void gather_sums(struct trainer *trainer)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	size_t begin = (size_t)((char *)trainer->blocks -
				(char *)trainer->grad) / sizeof(float);
	uint64_t ticket;

	trainer_mark(trainer, SUMS_BEGUN);
	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, ALL_GATHER, begin,
					  trainer_count_sums(trainer) *
					  SUM_FLOATS, DEVICE_FP32, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
	trainer_mark(trainer, SUMS_GATHERED);
}

void trainer_start_gather(struct trainer *trainer, int i)
{
	enum device_type type = trainer->options->dtype;
	size_t begin = (size_t)((char *)trainer->param -
				(char *)trainer->grad);

	buckets_start_gather(&trainer->buckets, i,
			     begin / device_type_bytes(type), type);
}

void trainer_wait_for_gathers(struct trainer *trainer)
{
	trainer_mark(trainer, GATHERS_BEGUN);
	buckets_wait(&trainer->buckets);
	trainer_mark(trainer, GATHERS_ENDED);
}

/* ---- the update */

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
	double *sums = find_sums(trainer);
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
		gather_sums(trainer);
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
