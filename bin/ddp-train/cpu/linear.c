/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fully connected layer with bias and GELU, in blocks of rows: a block is
 * still in the cache for the work before or after its product.
 */
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

enum { FORWARD_ROWS = 1024, COLUMNS = 256 };

static int limit_block(int left, int block)
{
	return left < block ? left : block;
}

/*
 * GELU as GPT-2 has it: x / 2 * (1 + tanh(u)) = x / (1 + exp(-2 u)) with
 * u = sqrt(2 / pi) * (x + 0.044715 x^3). This is exp(-2 u), but at most
 * exp(80): it is multiplied by what can be 0.
 */
INLINE float gelu_exp(float x)
{
	float exponent = x * (-1.5957691216f - 0.0713548163f * (x * x));

	return vexp(vlimit(exponent, exponent > 80, 80));
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

INLINE void apply_gelu(enum device_type type, size_t count, const void *pre,
		       void *y)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		save(type, y, i, gelu(load(type, pre, i)));
}

INLINE void apply_slope(enum device_type type, size_t count, const void *pre,
			void *d)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		save(type, d, i, load(type, d, i) *
				 gelu_slope(load(type, pre, i)));
}

KERNEL static void compute_gelu(enum device_type type, size_t count,
				const void *pre, void *y)
{
	FOR_TYPE(type, apply_gelu(T, count, pre, y));
}

/* d *= gelu'(pre) */
KERNEL static void multiply_slope(enum device_type type, size_t count,
				  const void *pre, void *d)
{
	FOR_TYPE(type, apply_slope(T, count, pre, d));
}

void cpu_gelu(struct device *device, const void *pre, void *y, size_t count)
{
	compute_gelu(device->type, count, pre, y);
}

/* Computes in fp32 y += bias; with pre, pre += bias and y = gelu(pre). */
KERNEL static void finish_rows(int rows, int out, const float *bias,
			       float *pre, float *y)
{
	for (int row = 0; row < rows; row++) {
		size_t begin = (size_t)row * out;
		float *sum = pre ? pre + begin : y + begin;

		if (bias) {
#pragma omp simd
			for (int i = 0; i < out; i++)
				sum[i] += bias[i];
		}
		if (pre)
			apply_gelu(DEVICE_FP32, out, sum, y + begin);
	}
}

/* Adds the sum of the rows of dy to dbias, in fp32. */
KERNEL static void add_rows(int rows, int out, const float *dy, float *dbias)
{
	for (int row = 0; row < rows; row++) {
		const float *d = dy + (size_t)row * out;

#pragma omp simd
		for (int i = 0; i < out; i++)
			dbias[i] += d[i];
	}
}

INLINE void add_columns(enum device_type type, int rows, int stride,
			int columns, const void *x, float *sum)
{
	for (int row = 0; row < rows; row++) {
		const void *from = value_at(type, x, (size_t)row * stride);

#pragma omp simd
		for (int i = 0; i < columns; i++)
			sum[i] += load(type, from, i);
	}
}

/* Sums the rows of x to `to`, rounded once. */
KERNEL static void sum_rows(enum device_type type, int rows, int width,
			    const void *x, void *to)
{
	for (int begin = 0; begin < width; begin += COLUMNS) {
		float sum[COLUMNS] = { 0 };
		int columns = limit_block(width - begin, COLUMNS);

		FOR_TYPE(type, add_columns(T, rows, width, columns,
					   value_at(T, x, begin), sum));
		FOR_TYPE(type, round_row(T, sum, columns,
					 value_at(T, to, begin)));
	}
}

void cpu_matmul(struct device *device, const struct op_matmul *op)
{
	enum device_type type = device->type;
	bool wide = type == DEVICE_FP32;

	for (int begin = 0; begin < op->rows; begin += FORWARD_ROWS) {
		int rows = limit_block(op->rows - begin, FORWARD_ROWS);
		size_t to = (size_t)begin * op->out;
		void *pre = op->pre ? value_at(type, op->pre, to) : NULL;
		void *y = value_at(type, op->y, to);

		cpu_multiply(device, &(struct matmul){
			.rounded = !wide,
			.transpose_b = true, .m = rows, .n = op->out,
			.k = op->in, .alpha = 1,
			.a = value_at(type, op->x, (size_t)begin * op->in),
			.lda = op->in, .b = op->weight, .ldb = op->in,
			.bias = wide ? NULL : op->bias,
			.c = pre ? pre : y, .ldc = op->out });
		if (wide)
			finish_rows(rows, op->out, op->bias, pre, y);
		else if (pre)
			compute_gelu(type, (size_t)rows * op->out, pre, y);
	}
}

/* A block of dx is still in the cache for the slope. */
static void multiply_dx(struct device *device,
			const struct op_matmul_backward *op, int begin,
			int rows)
{
	enum device_type type = device->type;
	size_t to = (size_t)begin * op->in;

	if (!op->dx)
		return;
	cpu_multiply(device, &(struct matmul){
		.rounded = type != DEVICE_FP32,
		.m = rows, .n = op->in, .k = op->out, .alpha = 1,
		.a = value_at(type, op->dy, (size_t)begin * op->out),
		.lda = op->out, .b = op->weight, .ldb = op->in,
		.c = value_at(type, op->dx, to), .ldc = op->in });
	if (op->x_pre)
		multiply_slope(type, (size_t)rows * op->in,
			       value_at(type, op->x_pre, to),
			       value_at(type, op->dx, to));
}

static void multiply_dweight(struct device *device,
			     const struct op_matmul_backward *op, int begin,
			     int rows, bool add)
{
	enum device_type type = device->type;

	cpu_multiply(device, &(struct matmul){
		.rounded = type != DEVICE_FP32, .add = add,
		.transpose_a = true, .m = op->out, .n = op->in, .k = rows,
		.alpha = 1,
		.a = value_at(type, op->dy, (size_t)begin * op->out),
		.lda = op->out,
		.b = value_at(type, op->x, (size_t)begin * op->in),
		.ldb = op->in, .c = op->dweight, .ldc = op->in });
}

/* Runs in 16 bit. A sum over rows is rounded once, so it takes all rows. */
static void run_backward(struct device *device,
			 const struct op_matmul_backward *op)
{
	enum device_type type = device->type;

	for (int begin = 0; begin < op->rows; begin += matmul_sum_rows) {
		int rows = limit_block(op->rows - begin, matmul_sum_rows);

		multiply_dx(device, op, begin, rows);
	}
	multiply_dweight(device, op, 0, op->rows, false);
	if (op->dbias)
		sum_rows(type, op->rows, op->out, op->dy, op->dbias);
}

/* Runs in fp32: a block of dy is still in the cache for all that read it. */
static void run_backward_floats(struct device *device,
				const struct op_matmul_backward *op)
{
	if (op->dbias && !op->accumulate)
		memset(op->dbias, 0, (size_t)op->out * sizeof(float));
	for (int begin = 0; begin < op->rows; begin += matmul_sum_rows) {
		int rows = limit_block(op->rows - begin, matmul_sum_rows);

		if (op->dbias)
			add_rows(rows, op->out, (const float *)op->dy +
				 (size_t)begin * op->out, op->dbias);
		multiply_dx(device, op, begin, rows);
		multiply_dweight(device, op, begin, rows,
				 op->accumulate || begin > 0);
	}
}

void cpu_matmul_backward(struct device *device,
			 const struct op_matmul_backward *op)
{
	if (device->type == DEVICE_FP32)
		run_backward_floats(device, op);
	else
		run_backward(device, op);
}
