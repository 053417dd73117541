/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks how gradients are summed, and that ranks have the same parameters. */
#include <inttypes.h>

#include "collective.h"
#include "ddp.h"
#include "model.h"
#include "run/world.h"
#include "step/fold.h"
#include "step/trainer.h"
#include "util/error.h"

enum { PART = 1024 };		/* values on the stack */

/* FNV-1a (Fowler, Noll, Vo), over words of 64 bits in four lanes. */
static uint64_t hash_piece(uint64_t hash, const float *piece, size_t count)
{
	static const uint64_t prime = UINT64_C(0x100000001b3);
	uint64_t lanes[4] = { hash, hash + 1, hash + 2, hash + 3 };

	for (size_t i = 0; i < count; i += 8)
		for (int lane = 0; lane < 4; lane++) {
			uint64_t word;

			__builtin_memcpy(&word, piece + i + 2 * lane,
					 sizeof(word));
			lanes[lane] = (lanes[lane] ^ word) * prime;
			/* A product carries upwards only: mix downwards. */
			lanes[lane] ^= lanes[lane] >> 32;
		}
	for (int lane = 0; lane < 4; lane++)
		hash = (hash ^ lanes[lane]) * prime;
	return hash;
}

/* The master, or where each rank has a part of that, what operators read. */
uint64_t trainer_hash_parameters(struct trainer *trainer)
{
	bool sharded = trainer->buckets.sharded;
	const char *values = sharded ? trainer->param :
				       (char *)trainer->master;
	size_t bytes = trainer->model->param_count *
		       device_type_bytes(sharded ? trainer->options->dtype :
						   DEVICE_FP32);
	const size_t most = PIECE * sizeof(float);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t begin = 0; begin < bytes; begin += most) {
		size_t length = bytes - begin < most ? bytes - begin : most;

		trainer_fetch(trainer, trainer->piece, values + begin, length);
		hash = hash_piece(hash, trainer->piece,
				  length / sizeof(float));
		ddp_heartbeat();
	}
	return hash;
}

/*
 * One rank has a number up to 119 at each place, and the next one 64. So their
 * sum is exact in any order, in 16 bits and for any number of ranks. The
 * numbers do not repeat at the distance of a slice, so that values that change
 * places are found.
 */
static float make_number(size_t i)
{
	return (float)(1 + i % 61 + i / 61 % 59);
}

static float make_value(const struct collective *collective, size_t i)
{
	uint32_t size = (uint32_t)collective->size;
	uint32_t rank = (uint32_t)collective->rank;
	uint32_t first = (uint32_t)(i / 7) % size;

	if (rank == first)
		return make_number(i);
	return rank == (first + 1) % size ? 64 : 0;
}

/* Write at most PIECE values of the pattern to the gradient. */
static void write_piece(struct trainer *trainer, size_t begin, size_t count)
{
	enum device_type type = trainer->options->grad_dtype;
	size_t bytes = device_type_bytes(type);
	struct device *device = &trainer->device;
	char *piece = (char *)trainer->piece;
	float values[PART];

	for (size_t i = 0; i < count; i += PART) {
		size_t part = count - i < PART ? count - i : PART;

		for (size_t j = 0; j < part; j++)
			values[j] = make_value(trainer->collective,
					       begin + i + j);
		half_round(type, values, piece + i * bytes, part);
	}
	device->table->copy(device, QUEUE_COMPUTE, (char *)trainer->grad +
			    begin * bytes, piece, count * bytes);
}

static int compare_piece(struct trainer *trainer, size_t begin, size_t count,
			 struct ddp_error *error)
{
	enum device_type type = trainer->options->grad_dtype;
	size_t bytes = device_type_bytes(type);
	float other = trainer->collective->size > 1 ? 64 : 0;
	char *piece = (char *)trainer->piece;

	if (trainer_fetch(trainer, piece, (char *)trainer->grad +
			  begin * bytes, count * bytes) < 0)
		return trainer->device.table->check(&trainer->device, error);
	for (size_t i = 0; i < count; i++) {
		float want = make_number(begin + i) + other, had;

		half_widen(type, piece + i * bytes, &had, 1);
		if (had != want)
			return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s "
				"gave %g at %zu where %g is right; test the "
				"network with ddp-bench",
				trainer->buckets.sharded ? "a reduce-scatter "
				"and an all-gather" : "an all-reduce",
				(double)had, begin + i, (double)want);
	}
	return 0;
}

/* Sums the first values of the gradient. */
static void sum_values(struct trainer *trainer, enum collective_op op,
		       size_t count)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	uint64_t ticket;

	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, op, 0, count,
					  trainer->options->grad_dtype, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
}

int trainer_check_reduce(struct trainer *trainer, struct ddp_error *mine,
			 struct ddp_error *error)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	enum device_type type = trainer->options->grad_dtype;
	size_t count = buckets_find_largest(&trainer->buckets);

	for (size_t begin = 0; begin < count; begin += PIECE)
		write_piece(trainer, begin, count - begin < PIECE ?
			    count - begin : PIECE);
	if (trainer->buckets.sharded) {
		sum_values(trainer, REDUCE_SCATTER, count);
		sum_values(trainer, ALL_GATHER, count);
	} else {
		sum_values(trainer, ALL_REDUCE, count);
	}
	for (size_t begin = 0; begin < count && mine->code == DDP_ERROR_NONE;
	     begin += PIECE)
		compare_piece(trainer, begin, count - begin < PIECE ?
			      count - begin : PIECE, mine);
	device->table->zero(device, trainer->grad,
			    count * device_type_bytes(type));
	return world_share_errors(collective, mine, error);
}
