/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of ranks that each update a part: --zero 1. */
#include <stdlib.h>

#include "collective.h"
#include "model.h"
#include "step/trainer.h"
#include "util/error.h"

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

double *trainer_find_sums(const struct trainer *trainer)
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

void trainer_gather_sums(struct trainer *trainer)
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
