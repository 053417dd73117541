/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the all-reduce, and that ranks have the same parameters. */
#include <inttypes.h>

#include "collective.h"
#include "ddp.h"
#include "layout/error.h"
#include "model.h"
#include "trainer.h"
#include "world.h"

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

uint64_t trainer_hash_parameters(struct trainer *trainer)
{
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t begin = 0; begin < count; begin += PIECE) {
		size_t length = count - begin < PIECE ? count - begin : PIECE;

		device_fetch(device, trainer->piece, trainer->param + begin,
			     length * sizeof(float));
		hash = hash_piece(hash, trainer->piece, length);
		ddp_heartbeat();
	}
	return hash;
}

/*
 * Small whole numbers, so that their sum is exact in fp32 in any order: below
 * 2^24 for 92,000 ranks. They do not repeat at the distance of a slice, so that
 * values that change places are found.
 */
static float make_value(int rank, size_t i)
{
	return (float)(i % 61 + i / 61 % 59 + (size_t)rank % 64);
}

static void write_pattern(struct trainer *trainer, size_t count)
{
	struct device *device = &trainer->device;
	int rank = trainer->collective->rank;

	for (size_t begin = 0; begin < count; begin += PIECE) {
		size_t length = count - begin < PIECE ? count - begin : PIECE;

		for (size_t i = 0; i < length; i++)
			trainer->piece[i] = make_value(rank, begin + i);
		device->table->copy(device, QUEUE_COMPUTE,
				    trainer->levels[0] + begin, trainer->piece,
				    length * sizeof(float));
	}
}

static int compare_sums(struct trainer *trainer, size_t count,
			struct ddp_error *error)
{
	struct device *device = &trainer->device;
	int size = trainer->collective->size;
	float base = 0;

	for (int rank = 0; rank < size; rank++)
		base += make_value(rank, 0);
	for (size_t i = 0; i < count; i++) {
		float want = base + (float)size * make_value(0, i);

		if (i % PIECE == 0) {
			size_t left = count - i;

			device_fetch(device, trainer->piece,
				     trainer->levels[0] + i,
				     (left < PIECE ? left : PIECE) *
				     sizeof(float));
		}
		if (trainer->piece[i % PIECE] != want)
			return ddp_error_set(error, DDP_ERROR_SYSTEM, "an "
				"all-reduce of %zu values gave %g at %zu "
				"where %g is right; test the network with "
				"ddp-bench", count,
				(double)trainer->piece[i % PIECE], i,
				(double)want);
	}
	return 0;
}

int trainer_check_reduce(struct trainer *trainer, struct ddp_error *mine,
			 struct ddp_error *error)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	size_t count = buckets_find_largest(&trainer->buckets);
	uint64_t ticket;

	write_pattern(trainer, count);
	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, ALL_REDUCE, 0, count,
					  FLOAT32, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
	if (mine->code == DDP_ERROR_NONE)
		compare_sums(trainer, count, mine);
	device->table->fill(device, trainer->levels[0], 0, count);
	return world_share_errors(collective, mine, error);
}
