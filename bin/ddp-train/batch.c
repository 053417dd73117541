/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "collective.h"
#include "model.h"
#include "trainer.h"

/*
 * Where chunks are summed by a tree, those that meet first are computed one
 * after the other: in bit-reversed order.
 */
int trainer_chunk_index(const struct trainer *trainer, int order)
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
static uint64_t position(const struct trainer *trainer, int chunk, int i)
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

static uint64_t sample(const struct trainer *trainer, uint64_t step,
		       uint64_t position)
{
	const struct sampler *sampler = &trainer->sampler;
	uint64_t length;

	if (!trainer->data->bytes)
		return (step - 1) * trainer->options->global_batch + position;
	length = sampler_length(sampler);
	return sampler_index(sampler, (step - 1) / length, position,
			     (step - 1) % length);
}

/* Sequence s is tokens s * context ..; its targets are one further on. */
static void load(struct trainer *trainer, int count, struct batch *batch)
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

void trainer_load(struct trainer *trainer, uint64_t step, int order,
		  struct batch *batch)
{
	int chunk = trainer_chunk_index(trainer, order);

	for (int i = 0; i < trainer->chunk; i++)
		trainer->samples[i] = sample(trainer, step,
					     position(trainer, chunk, i));
	load(trainer, trainer->chunk, batch);
}

void trainer_load_held_out(struct trainer *trainer, uint64_t first, int count,
			   struct batch *batch)
{
	for (int i = 0; i < count; i++)
		trainer->samples[i] = trainer->sampler.samples + first +
				      (uint64_t)i;
	load(trainer, count, batch);
}
