/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fully connected layer with bias and GELU, in blocks of rows: a block is
 * still in the cache for the work before or after its product.
 */
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/vexp.h"

enum { FORWARD_ROWS = 1024 };

/*
 * GELU as GPT-2 has it: x / 2 * (1 + tanh(u)) = x / (1 + exp(-2 u)) with
 * u = sqrt(2 / pi) * (x + 0.044715 x^3). This is exp(-2 u), but at most
 * exp(80): it is multiplied by what can be 0.
 */
INLINE float gelu_exp(float x)
{
	float exponent = x * (-1.5957691216f - 0.0713548163f * (x * x));

	return vexp(exponent > 80 ? 80 : exponent);
}

INLINE float gelu(float x)
{
	return x / (1 + gelu_exp(x));
}

/* s + s (1 - s) x 2 u', with s = 1 / (1 + exp(-2 u)). */
INLINE float gelu_slope(float x)
{
	float e = gelu_exp(x), s = 1 / (1 + e);
	float slope = x * (1.5957691216f + 0.2140644489f * (x * x));

	/* s * e is 1 - s without cancellation; e * slope could overflow. */
	return s + s * (s * e * slope);
}

/* y += bias; with pre, pre += bias and y = gelu(pre). */
KERNEL static void finish_rows(int rows, int out, const float *bias,
			       float *pre, float *y)
{
	for (int row = 0; row < rows; row++) {
		float *sum = pre ? pre + (size_t)row * out :
				   y + (size_t)row * out;

		if (bias) {
#pragma omp simd
			for (int i = 0; i < out; i++)
				sum[i] += bias[i];
		}
		if (pre) {
			float *to = y + (size_t)row * out;
#pragma omp simd
			for (int i = 0; i < out; i++)
				to[i] = gelu(sum[i]);
		}
	}
}

/* With pre, dy *= gelu'(pre); dbias += the sum of its rows. */
KERNEL static void begin_rows(int rows, int out, const float *pre,
			      float *dy, float *dbias)
{
	for (int row = 0; row < rows; row++) {
		float *d = dy + (size_t)row * out;

		if (pre) {
			const float *x = pre + (size_t)row * out;
#pragma omp simd
			for (int i = 0; i < out; i++)
				d[i] *= gelu_slope(x[i]);
		}
		if (dbias) {
#pragma omp simd
			for (int i = 0; i < out; i++)
				dbias[i] += d[i];
		}
	}
}

KERNEL static void compute_gelu(const float *pre, float *y, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		y[i] = gelu(pre[i]);
}

void cpu_gelu(struct device *device, const float *pre, float *y, size_t count)
{
	(void)device;
	compute_gelu(pre, y, count);
}

static int count_block_rows(int left, int block)
{
	return left < block ? left : block;
}

void cpu_matmul(struct device *device, const struct op_matmul *op)
{
	(void)device;
	for (int begin = 0; begin < op->rows; begin += FORWARD_ROWS) {
		int rows = count_block_rows(op->rows - begin, FORWARD_ROWS);
		size_t to = (size_t)begin * op->out;
		float *pre = op->pre ? op->pre + to : NULL;

		matmul(&(struct matmul){
			.transpose_b = true, .m = rows, .n = op->out,
			.k = op->in, .alpha = 1,
			.a = op->x + (size_t)begin * op->in, .lda = op->in,
			.b = op->weight, .ldb = op->in,
			.c = pre ? pre : op->y + to, .ldc = op->out });
		finish_rows(rows, op->out, op->bias, pre, op->y + to);
	}
}

static void run_block_backward(const struct op_matmul_backward *op, int begin,
			       bool add)
{
	int rows = count_block_rows(op->rows - begin, matmul_sum_rows);
	size_t from = (size_t)begin * op->out, to = (size_t)begin * op->in;
	float *dy = op->dy + from;

	begin_rows(rows, op->out, op->pre ? op->pre + from : NULL, dy,
		   op->dbias);
	if (op->dx)
		matmul(&(struct matmul){
			.m = rows, .n = op->in, .k = op->out, .alpha = 1,
			.a = dy, .lda = op->out,
			.b = op->weight, .ldb = op->in,
			.c = op->dx + to, .ldc = op->in });
	matmul(&(struct matmul){
		.transpose_a = true, .add = add, .m = op->out, .n = op->in,
		.k = rows, .alpha = 1,
		.a = dy, .lda = op->out, .b = op->x + to, .ldb = op->in,
		.c = op->dweight, .ldc = op->in });
}

void cpu_matmul_backward(struct device *device,
			 const struct op_matmul_backward *op)
{
	(void)device;
	if (op->dbias && !op->accumulate)
		memset(op->dbias, 0, (size_t)op->out * sizeof(float));
	for (int begin = 0; begin < op->rows; begin += matmul_sum_rows)
		run_block_backward(op, begin, op->accumulate || begin > 0);
}
