/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of tokens and positions. */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

enum { COLUMNS = 256 };

/* In 16 bit, the rows in the order of their tokens. */
size_t cpu_count_embed_work(const struct device_shape *shape)
{
	return shape->type == DEVICE_FP32 ? 0 :
	       (size_t)shape->rows * sizeof(uint64_t);
}

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

/* The rows that are added to one row of a table: numbers in their low half */
struct group {
	const uint64_t *rows;
	int count;
};

/* to = the sum of the group's rows of dout, and with add of to, rounded once */
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
			size_t row = (uint32_t)group->rows[i];

			add_to_sum(type, value_at(type, dout, row * width +
						  begin), columns, sum);
		}
		half_round(type, sum, part, columns);
	}
}

static int compare_rows(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Put what a row is added to above its number, and sort; returns the groups. */
static void sort_rows(const struct op_embed_backward *op, bool tokens)
{
	uint64_t *rows = op->work;

	for (int row = 0; row < op->rows; row++)
		rows[row] = (uint64_t)(tokens ? op->tokens[row] :
				       row % op->context) << 32 |
			    (uint32_t)row;
	qsort(rows, op->rows, sizeof(*rows), compare_rows);
}

/* Add to a table what its rows were used for. */
static void sum_groups(enum device_type type,
		       const struct op_embed_backward *op, void *table,
		       bool add)
{
	const uint64_t *rows = op->work;
	struct group group;

	for (int begin = 0; begin < op->rows; begin += group.count) {
		size_t number = rows[begin] >> 32;

		group = (struct group){ rows + begin, 1 };
		while (begin + group.count < op->rows &&
		       rows[begin + group.count] >> 32 == number)
			group.count++;
		sum_group(type, &group, op->dout, op->width, add,
			  value_at(type, table, number * op->width));
	}
}

void cpu_embed_backward(struct device *device,
			const struct op_embed_backward *op)
{
	enum device_type type = device->type;

	if (type == DEVICE_FP32) {
		run_backward_floats(op);
		return;
	}
	sort_rows(op, true);
	sum_groups(type, op, op->dtoken_table, true);
	memset(op->dposition_table, 0, (size_t)op->context * op->width *
	       device_type_bytes(type));
	sort_rows(op, false);
	sum_groups(type, op, op->dposition_table, false);
}
