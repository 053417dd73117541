/* SPDX-License-Identifier: BSD-3-Clause */
/* The trainer's state, as a checkpoint has it. */
#include "checkpoint/state.h"

#include "collective.h"
#include "ddp.h"
#include "model.h"
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
