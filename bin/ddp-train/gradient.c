/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient of a step, chunk by chunk, and the loss of held-out data. */
#include "collective.h"
#include "ddp.h"
#include "fold.h"
#include "layout/clock.h"
#include "model.h"
#include "trainer.h"

/*
 * If a tree sums the chunks, those that are added first are computed one after
 * the other: in bit-reversed order.
 */
static int find_chunk(const struct trainer *trainer, int order)
{
	int index = 0;

	if (!trainer->options->deterministic)
		return order;
	for (int bit = 1; bit < trainer->chunks; bit <<= 1) {
		index = 2 * index + (order & 1);
		order >>= 1;
	}
	return index;
}

/* The position in the step of a chunk's i-th sequence. */
static uint64_t find_position(const struct trainer *trainer, int chunk, int i)
{
	const struct options *options = trainer->options;
	uint64_t rank = (uint64_t)trainer->collective->rank;
	uint64_t size = (uint64_t)trainer->collective->size;
	uint64_t granules = options->global_batch / options->granule;

	if (options->deterministic)
		return rank + (uint64_t)chunk * size + (uint64_t)i * granules;
	return rank + ((uint64_t)chunk * (uint64_t)trainer->chunk +
		       (uint64_t)i) * size;
}

static uint64_t find_sample(const struct trainer *trainer, uint64_t step,
			    uint64_t position)
{
	const struct sampler *sampler = &trainer->sampler;
	uint64_t length;

	if (!trainer->data->bytes)
		return (step - 1) * trainer->options->global_batch + position;
	length = sampler_count(sampler);
	return sampler_find_sample(sampler, (step - 1) / length, position,
				   (step - 1) % length);
}

/* Sequence s is tokens s * context ..; its targets are one further on. */
static void load_batch(struct trainer *trainer, int count, struct batch *batch)
{
	struct device *device = &trainer->device;
	size_t context = trainer->model->shape.context;
	size_t half = (size_t)trainer->chunk * context;
	size_t bytes = (size_t)count * context * sizeof(int32_t);

	*batch = (struct batch){
		.sequences = count, .samples = trainer->samples,
		.tokens = trainer->tokens, .targets = trainer->targets
	};
	if (!trainer->data->bytes)
		return;
	for (int i = 0; i < count; i++) {
		uint64_t first = trainer->samples[i] * context;
		int32_t *tokens = trainer->read + (size_t)i * context;

		data_read(trainer->data, first, context, tokens);
		data_read(trainer->data, first + 1, context, tokens + half);
	}
	device->table->copy(device, QUEUE_COMPUTE, trainer->tokens,
			    trainer->read, bytes);
	device->table->copy(device, QUEUE_COMPUTE, trainer->targets,
			    trainer->read + half, bytes);
}

static void load_chunk(struct trainer *trainer, uint64_t step, int order,
		       struct batch *batch)
{
	int chunk = find_chunk(trainer, order);

	for (int i = 0; i < trainer->chunk; i++) {
		uint64_t position = find_position(trainer, chunk, i);

		trainer->samples[i] = find_sample(trainer, step, position);
	}
	load_batch(trainer, trainer->chunk, batch);
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

/*
 * After each operator of the last chunk: sum the gradients of all chunks up to
 * `end`, and start the buckets that this completes.
 */
static void start_ready(void *context, size_t end)
{
	struct trainer *trainer = context;

	add_levels(trainer, trainer->level_count, 0, trainer->summed, end);
	trainer->summed = end;
	trainer->computed = ddp_clock_seconds();
	buckets_start_ready(&trainer->buckets, end);
}

/* The gradient of the chunk that is `order`-th in the computation. */
static void compute_chunk(struct trainer *trainer, uint64_t step, int order)
{
	bool last = order == trainer->chunks - 1;
	bool tree = trainer->options->deterministic;
	int level = tree ? __builtin_popcount((unsigned int)order) : 0;
	struct backward backward = {
		.scale = 1 / (double)trainer->options->global_batch,
		.accumulate = !tree && order > 0,
		.progress = last ? start_ready : NULL,
		.context = trainer
	};
	struct batch batch;

	load_chunk(trainer, step, order, &batch);
	trainer->model->gradient(trainer->model, &trainer->device,
				 trainer->param, &batch, &backward,
				 trainer->levels[level],
				 trainer->losses +
				 find_chunk(trainer, order));
	if (last)
		return;
	/* Of the levels, as many fold as order ends in ones. */
	add_levels(trainer, level,
		   __builtin_popcount((unsigned int)order + 1) - 1, 0,
		   trainer->model->param_count);
	ddp_heartbeat();
}

void trainer_compute_gradient(struct trainer *trainer, uint64_t step,
			      struct share *share)
{
	struct device *device = &trainer->device;
	double begin = ddp_clock_seconds();

	trainer->summed = 0;
	for (int order = 0; order < trainer->chunks; order++)
		compute_chunk(trainer, step, order);
	buckets_finish(&trainer->buckets);
	share->busy = trainer->computed - begin;
	share->exposed = ddp_clock_seconds() - trainer->computed;
	device_fetch(device, trainer->host_losses, trainer->losses,
		     (size_t)trainer->chunks * sizeof(double));
	share->loss = fold_doubles(trainer->host_losses, trainer->chunks);
	share->norm = trainer_compute_norm(trainer);
}

/* What one chunk of held-out sequences adds to the mean loss. */
static double compute_chunk_loss(struct trainer *trainer, uint64_t first)
{
	uint64_t left = trainer->held_out - first;
	int count = left < (uint64_t)trainer->chunk ? (int)left :
						      trainer->chunk;
	struct device *device = &trainer->device;
	struct backward backward = {
		.scale = 1 / (double)trainer->held_out
	};
	struct batch batch;

	for (int i = 0; i < count; i++)
		trainer->samples[i] = trainer->sampler.samples + first +
				      (uint64_t)i;
	load_batch(trainer, count, &batch);
	trainer->model->gradient(trainer->model, device, trainer->param,
				 &batch, &backward, NULL, trainer->losses);
	device_fetch(device, trainer->host_losses, trainer->losses,
		     sizeof(double));
	return trainer->host_losses[0];
}

/* The ranks take chunks in turn, and all add them up in the same order. */
double trainer_evaluate(struct trainer *trainer)
{
	struct collective *collective = trainer->collective;
	uint64_t chunk = (uint64_t)trainer->chunk;
	uint64_t turn = chunk * (uint64_t)collective->size;
	struct share *shares = trainer->shares;
	double sum = 0;

	for (uint64_t begin = 0; begin < trainer->held_out; begin += turn) {
		uint64_t first = begin + chunk * (uint64_t)collective->rank;
		struct share mine = { 0 };

		if (first < trainer->held_out)
			mine.loss = compute_chunk_loss(trainer, first);
		collective->table->agree(collective, &mine, shares,
					 sizeof(mine));
		for (int rank = 0; rank < collective->size; rank++)
			sum += shares[rank].loss;
		ddp_heartbeat();
	}
	return sum;
}
