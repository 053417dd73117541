/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear layer, softmax and cross entropy in one, forward and backward, in
 * blocks of rows.
 */
#include "cpu/cpu.h"
#include "cpu/vexp.h"

/* Rows at once: enough to make reading all weights worth it. */
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
