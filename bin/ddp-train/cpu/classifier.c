/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear layer, softmax and cross entropy in one, forward and backward, in
 * blocks of rows.
 */
#include "cpu/cpu.h"
#include "cpu/vexp.h"

/* Rows at once: enough to make reading all weights worth it. */
enum { BLOCK = 256 };

size_t cpu_count_classifier_work(const struct device_shape *shape)
{
	size_t rows = shape->rows < BLOCK ? shape->rows : BLOCK;

	return rows * round_to_lanes(shape->vocab) * sizeof(float);
}

/*
 * The sum over rows of -log softmax(logits)[target]; the logits become its
 * gradient times scale.
 */
KERNEL static double compute_cross_entropy(int rows, int vocab, float *logits,
					   const int32_t *targets, float scale)
{
	int stride = round_to_lanes(vocab);
	double loss = 0;

	for (int row = 0; row < rows; row++) {
		float *x = logits + (size_t)row * stride;
		double target = x[targets[row]];

		loss += vsoftmax(x, vocab, scale) - target;
		x[targets[row]] -= scale;
	}
	return loss;
}

static void run_block_backward(const struct op_classifier *op, int begin,
			       int rows, bool add)
{
	int stride = round_to_lanes(op->vocab);
	size_t at = (size_t)begin * op->width;

	matmul(&(struct matmul){
		.m = rows, .n = op->width, .k = op->vocab, .alpha = 1,
		.a = op->work, .lda = stride,
		.b = op->weight, .ldb = op->width,
		.c = op->dx + at, .ldc = op->width });
	matmul(&(struct matmul){
		.transpose_a = true, .add = add, .m = op->vocab,
		.n = op->width, .k = rows, .alpha = 1,
		.a = op->work, .lda = stride,
		.b = op->x + at, .ldb = op->width,
		.c = op->dweight, .ldc = op->width });
}

void cpu_classifier(struct device *device, const struct op_classifier *op)
{
	double loss = 0;

	(void)device;
	for (int begin = 0; begin < op->rows; begin += BLOCK) {
		int left = op->rows - begin;
		int rows = left < BLOCK ? left : BLOCK;

		matmul(&(struct matmul){
			.transpose_b = true, .m = rows, .n = op->vocab,
			.k = op->width, .alpha = 1,
			.a = op->x + (size_t)begin * op->width,
			.lda = op->width,
			.b = op->weight, .ldb = op->width,
			.c = op->work, .ldc = round_to_lanes(op->vocab) });
		loss += compute_cross_entropy(rows, op->vocab, op->work,
					      op->targets + begin, op->scale);
		if (op->dx)
			run_block_backward(op, begin, rows,
					   op->accumulate || begin > 0);
	}
	*op->loss = op->scale * loss;
}
