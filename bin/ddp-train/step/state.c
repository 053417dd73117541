/* SPDX-License-Identifier: BSD-3-Clause */
/* The trainer's state, as a checkpoint has it, and a hash to compare it by. */
#include "collective.h"
#include "ddp.h"
#include "model.h"
#include "step/state.h"
#include "step/trainer.h"
#include "util/text.h"

enum { LINE = 16 };		/* values */

static void add(struct state *state, const char *name, float *values,
		bool whole)
{
	state->names[state->count] = name;
	state->values[state->count] = values;
	state->whole[state->count++] = whole;
}

/* How many ranges a rank saves, empty ones among them. */
static int count_parts(const struct trainer *trainer)
{
	return trainer->buckets.sharded ? trainer->buckets.count : 1;
}

/* Range i: the slice of a bucket, or an equal part of all values. */
static struct range find_part(const struct trainer *trainer, int rank, int i)
{
	size_t size = (size_t)trainer->collective->size;
	size_t lines = trainer->model->param_count / LINE;
	size_t first = (size_t)rank;

	if (trainer->buckets.sharded)
		return buckets_find_slice(&trainer->buckets, i, rank);
	return (struct range){ lines * first / size * LINE,
			       lines * (first + 1) / size * LINE };
}

void state_list(const struct trainer *trainer, struct state *state)
{
	int moments = trainer_count_moments(trainer->options);

	*state = (struct state){ .length = trainer->model->param_count };
	add(state, "param", trainer->master,
	    trainer->master == trainer->param);
	if (moments > 1)
		add(state, "m", trainer->m, false);
	if (moments > 0)
		add(state, "v", trainer->v, false);
	for (int i = 0; i < count_parts(trainer); i++) {
		struct range part = find_part(trainer,
					      trainer->collective->rank, i);

		state->part += part.end - part.begin;
	}
}

size_t state_count_bytes(const struct state *state)
{
	return state->part * (size_t)state->count * sizeof(float);
}

size_t trainer_count_snapshot(const struct trainer *trainer)
{
	struct state state;

	if (!trainer->options->checkpoint)
		return 0;
	state_list(trainer, &state);
	return state_count_bytes(&state);
}

struct range state_find_part(const struct trainer *trainer,
			     struct range values)
{
	const struct buckets *buckets = &trainer->buckets;

	for (int i = buckets_find(buckets, values.begin);
	     i < buckets->count && buckets->list[i].begin < values.end; i++) {
		struct range own = buckets_intersect(values,
						     buckets->list[i].own);

		if (own.begin < own.end)
			return own;
	}
	return (struct range){ values.end, values.end };
}

int state_list_ranges(const struct trainer *trainer, int rank,
		      struct range *ranges)
{
	int count = 0;

	for (int i = 0; i < count_parts(trainer); i++) {
		struct range part = find_part(trainer, rank, i);

		if (part.begin == part.end)
			continue;
		if (count > 0 && ranges[count - 1].end == part.begin)
			ranges[count - 1].end = part.end;
		else
			ranges[count++] = part;
	}
	return count;
}

/* Returns the place of a value in a state, which has those of the bucket. */
static float *find_value(const struct state *state, int index,
			 const struct bucket *bucket, size_t value)
{
	return state->values[index] + (state->whole[index] ? value :
				       bucket_find_kept(bucket, value));
}

/* This rank's part of one state; returns what follows it. */
static float *copy_state(struct trainer *trainer, const struct state *state,
			 int index, float *to)
{
	struct device *device = &trainer->device;

	for (int i = 0; i < count_parts(trainer); i++) {
		struct range part = find_part(trainer,
					      trainer->collective->rank, i);
		size_t count = part.end - part.begin;

		if (count == 0)
			continue;
		/* A state that is not sharded is as if in the first bucket. */
		device->table->copy(device, QUEUE_COMPUTE, to,
				    find_value(state, index,
					       &trainer->buckets.list[i],
					       part.begin),
				    count * sizeof(*to));
		to += count;
	}
	return to;
}

int state_copy(struct trainer *trainer, const struct state *state, void *to,
	       struct ddp_error *error)
{
	for (int index = 0; index < state->count; index++)
		to = copy_state(trainer, state, index, to);
	return trainer->device.table->check(&trainer->device, error);
}

void trainer_keep_values(struct trainer *trainer, float *to, bool whole,
			 struct range values, const float *from)
{
	const struct buckets *buckets = &trainer->buckets;
	struct device *device = &trainer->device;

	for (int i = buckets_find(buckets, values.begin);
	     i < buckets->count && buckets->list[i].begin < values.end; i++) {
		const struct bucket *bucket = &buckets->list[i];
		struct range own = buckets_intersect(values, bucket->own);

		if (own.begin < own.end)
			device->table->copy(device, QUEUE_COMPUTE, to +
					    (whole ? own.begin :
					     bucket_find_kept(bucket,
							      own.begin)),
					    from + own.begin - values.begin,
					    (own.end - own.begin) *
					    sizeof(*from));
	}
}

void state_write(struct trainer *trainer, const struct state *state, int index,
		 struct range values, const float *from)
{
	trainer_keep_values(trainer, state->values[index], state->whole[index],
			    values, from);
	ddp_heartbeat();
}

char *state_format_parameters(const struct trainer *trainer)
{
	const struct model *model = trainer->model;
	struct ddp_text text = { 0 };

	for (int i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor = &model->tensors[i];

		ddp_text_add(&text, "%s %zu %d %d\n", tensor->name,
			     tensor->offset, tensor->rows, tensor->columns);
	}
	return ddp_text_finish(&text);
}

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
