/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of tokens at both ends of a model: embedding and classifier. */
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

/* ---- embedding, with the table of positions */

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

/* ---- classifier */

/*
 * Linear layer, softmax and cross entropy in one, forward and backward, in
 * blocks of rows: so many that reading all weights is worth it.
 */
enum { BLOCK = 256 };

/*
 * A block's logits; in 16 bit also its rounded gradient, and the sum of
 * dweight over blocks.
 */
size_t cpu_count_classifier_work(const struct device_shape *shape)
{
	size_t rows = shape->rows < BLOCK ? shape->rows : BLOCK;
	size_t logits = rows * round_to_lanes(shape->vocab);
	size_t sums = shape->rows > BLOCK ?
		      (size_t)shape->vocab * shape->width : 0;

	if (shape->type == DEVICE_FP32)
		return logits * sizeof(float);
	return (logits + sums) * sizeof(float) +
	       logits * device_type_bytes(shape->type);
}

/* The parts of the workspace; in fp32 the gradient lies on the logits. */
struct parts {
	float *logits, *sums;
	void *dlogits;
};

static struct parts divide_work(const struct op_classifier *op,
				enum device_type type)
{
	size_t rows = op->rows < BLOCK ? op->rows : BLOCK;
	struct parts parts = { op->work, op->dweight, op->work };

	if (type == DEVICE_FP32)
		return parts;
	parts.sums = parts.logits + rows * round_to_lanes(op->vocab);
	parts.dlogits = parts.sums + (op->rows > BLOCK ?
				      (size_t)op->vocab * op->width : 0);
	return parts;
}

/*
 * Returns the sum over rows of -log softmax(logits)[target]. In dlogits, which
 * may be the logits, is its gradient times scale, or NaN where a row's part is
 * not finite.
 */
KERNEL static double compute_cross_entropy(enum device_type type, int rows,
					   int vocab, float *logits,
					   const int32_t *targets, float scale,
					   void *dlogits)
{
	int stride = round_to_lanes(vocab);
	double loss = 0;

	for (int row = 0; row < rows; row++) {
		size_t at = (size_t)row * stride;
		float *x = logits + at;
		double target = x[targets[row]];
		double part = vsoftmax(x, vocab, scale) - target;

		loss += part;
		x[targets[row]] -= isfinite(part) ? scale : NAN;
		if (type != DEVICE_FP32)
			FOR_TYPE(type, round_row(T, x, stride,
						 value_at(T, dlogits, at)));
	}
	return loss;
}

/* Sums over blocks are rounded after the last block, in 16 bit. */
static void multiply_gradients(struct device *device,
			       const struct op_classifier *op,
			       const struct parts *parts, int begin, int rows)
{
	enum device_type type = device->type;
	bool wide = type == DEVICE_FP32, whole = !wide && rows == op->rows;
	int stride = round_to_lanes(op->vocab);
	size_t at = (size_t)begin * op->width;

	cpu_multiply(device, &(struct matmul){
		.rounded = !wide, .m = rows, .n = op->width, .k = op->vocab,
		.alpha = 1, .a = parts->dlogits, .lda = stride,
		.b = op->weight, .ldb = op->width,
		.c = value_at(type, op->dx, at), .ldc = op->width });
	cpu_multiply(device, &(struct matmul){
		.transpose_a = true, .rounded = whole,
		.add = begin > 0 || (wide && op->accumulate), .m = op->vocab,
		.n = op->width, .k = rows, .alpha = 1,
		.a = parts->dlogits, .lda = stride,
		.b = value_at(type, op->x, at), .ldb = op->width,
		.c = whole ? op->dweight : parts->sums, .ldc = op->width });
	if (!wide && !whole && begin + rows == op->rows)
		half_round(type, parts->sums, op->dweight,
			   (size_t)op->vocab * op->width);
}

void cpu_classifier(struct device *device, const struct op_classifier *op)
{
	enum device_type type = device->type;
	struct parts parts = divide_work(op, type);
	float scale = op->scale;
	double loss = 0;

	if (op->loss_scale)
		scale = (float)(scale * *op->loss_scale);
	for (int begin = 0; begin < op->rows; begin += BLOCK) {
		int left = op->rows - begin;
		int rows = left < BLOCK ? left : BLOCK;

		cpu_multiply(device, &(struct matmul){
			.transpose_b = true, .m = rows, .n = op->vocab,
			.k = op->width, .alpha = 1,
			.a = value_at(type, op->x, (size_t)begin * op->width),
			.lda = op->width,
			.b = op->weight, .ldb = op->width,
			.c = parts.logits, .ldc = round_to_lanes(op->vocab) });
		loss += compute_cross_entropy(type, rows, op->vocab,
					      parts.logits,
					      op->targets + begin, scale,
					      parts.dlogits);
		if (op->dx)
			multiply_gradients(device, op, &parts, begin, rows);
	}
	*op->loss = op->scale * loss;
}
