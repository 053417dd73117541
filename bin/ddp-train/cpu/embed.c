/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of tokens and positions. */
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

enum { COLUMNS = 256 };

INLINE void add_values(enum device_type type, const void *a, const void *b,
		       int width, void *out)
{
#pragma omp simd
	for (int i = 0; i < width; i++)
		save(type, out, i, load(type, a, i) + load(type, b, i));
}

/* out = a + b, which may be out */
KERNEL static void add_row(enum device_type type, const void *a, const void *b,
			   int width, void *out)
{
	FOR_TYPE(type, add_values(T, a, b, width, out));
}

INLINE void add_wide(enum device_type type, const void *x, int count,
		     float *sum)
{
#pragma omp simd
	for (int i = 0; i < count; i++)
		sum[i] += load(type, x, i);
}

KERNEL static void add_to_sum(enum device_type type, const void *x, int count,
			      float *sum)
{
	FOR_TYPE(type, add_wide(T, x, count, sum));
}

void cpu_embed(struct device *device, const struct op_embed *op)
{
	enum device_type type = device->type;
	size_t width = (size_t)op->width;

	for (int row = 0; row < op->rows; row++) {
		size_t token = (size_t)op->tokens[row];
		size_t position = (size_t)(row % op->context);

		add_row(type, value_at(type, op->token_table, token * width),
			value_at(type, op->position_table, position * width),
			op->width, value_at(type, op->out,
					    (size_t)row * width));
	}
}

static void run_backward_floats(const struct op_embed_backward *op)
{
	size_t width = (size_t)op->width;

	if (!op->accumulate)
		memset(op->dposition_table, 0, (size_t)op->context * width *
		       sizeof(float));
	for (int row = 0; row < op->rows; row++) {
		const float *dout = (const float *)op->dout +
				    (size_t)row * width;
		float *dtoken = (float *)op->dtoken_table +
				(size_t)op->tokens[row] * width;
		float *dposition = (float *)op->dposition_table +
				   (size_t)(row % op->context) * width;

		add_row(DEVICE_FP32, dtoken, dout, op->width, dtoken);
		add_row(DEVICE_FP32, dposition, dout, op->width, dposition);
	}
}

/*
 * The rows of dout that are added to one row of a table: first, first + step,
 * ..., or those that order names there.
 */
struct group {
	const int32_t *order;		/* NULL: the numbers themselves */
	int first, step, count;
};

/* Sums the group's rows of dout to `to` (+ to, where add), rounded once. */
static void sum_group(enum device_type type, const struct group *group,
		      const void *dout, int width, bool add, void *to)
{
	for (int begin = 0; begin < width; begin += COLUMNS) {
		int left = width - begin;
		int columns = left < COLUMNS ? left : COLUMNS;
		void *part = value_at(type, to, begin);
		float sum[COLUMNS] = { 0 };

		if (add)
			half_widen(type, part, sum, columns);
		for (int i = 0; i < group->count; i++) {
			int at = group->first + i * group->step;
			size_t row = group->order ? group->order[at] : at;

			add_to_sum(type, value_at(type, dout, row * width +
						  begin), columns, sum);
		}
		half_round(type, sum, part, columns);
	}
}

static void sum_tokens(enum device_type type,
		       const struct op_embed_backward *op)
{
	struct group group = { op->order, 0, 1, 0 };

	for (; group.first < op->rows; group.first += group.count) {
		int32_t token = op->tokens[op->order[group.first]];

		group.count = 1;
		while (group.first + group.count < op->rows &&
		       op->tokens[op->order[group.first + group.count]] ==
		       token)
			group.count++;
		sum_group(type, &group, op->dout, op->width, true,
			  value_at(type, op->dtoken_table,
				   (size_t)token * op->width));
	}
}

static void sum_positions(enum device_type type,
			  const struct op_embed_backward *op)
{
	for (int position = 0; position < op->context; position++) {
		int left = op->rows - position;
		struct group group = {
			NULL, position, op->context,
			left > 0 ? (left - 1) / op->context + 1 : 0
		};

		sum_group(type, &group, op->dout, op->width, false,
			  value_at(type, op->dposition_table,
				   (size_t)position * op->width));
	}
}

void cpu_embed_backward(struct device *device,
			const struct op_embed_backward *op)
{
	if (device->type == DEVICE_FP32) {
		run_backward_floats(op);
		return;
	}
	sum_tokens(device->type, op);
	sum_positions(device->type, op);
}
