/* SPDX-License-Identifier: BSD-3-Clause */
/* What changes parameters and gradients, element by element. */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "fold.h"

/* A sum is formed in so many parts, whatever vectors the machine has. */
enum { LANES = 16 };

KERNEL static void adamw(const struct op_adamw *op)
{
	const float keep = (float)(1 - op->lr * op->decay);
	const float scale = (float)op->scale, eps = (float)op->eps;
	const float rest1 = (float)(1 - op->beta1);
	const float beta2 = (float)op->beta2, rest2 = (float)(1 - op->beta2);
	const float step = (float)(op->lr / op->correction1);
	const float correction2 = (float)op->correction2;
	const float *grad = op->grad;
	float *param = op->param, *m = op->m, *v = op->v;
	size_t count = op->count;

#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * scale;
		float mean = m[i] + rest1 * (g - m[i]);
		float square = beta2 * v[i] + rest2 * g * g;

		m[i] = mean;
		v[i] = square;
		param[i] = param[i] * keep -
			   step * mean / (sqrtf(square / correction2) + eps);
	}
}

KERNEL static void sgd(const struct op_sgd *op)
{
	const float lr = (float)op->lr, scale = (float)op->scale;
	const float decay = (float)op->decay, momentum = (float)op->momentum;
	const float *grad = op->grad;
	float *param = op->param, *v = op->v;
	size_t count = op->count;

	if (!v) {
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			param[i] -= lr * (grad[i] * scale + decay * param[i]);
		return;
	}
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * scale + decay * param[i];

		v[i] = momentum * v[i] + g;
		param[i] -= lr * v[i];
	}
}

KERNEL static double block_sum_squares(const float *x, size_t count)
{
	double sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += (double)x[i + lane] * x[i + lane];
	for (int lane = 0; i < count; i++, lane++)
		sum[lane] += (double)x[i] * x[i];
	for (int lane = 1; lane < LANES; lane++)
		sum[0] += sum[lane];
	return sum[0];
}

void cpu_sum_squares(struct device *device, const struct op_sum_squares *op)
{
	(void)device;
	for (size_t begin = 0; begin < op->count; begin += DEVICE_BLOCK) {
		size_t rest = op->count - begin;

		op->blocks[begin / DEVICE_BLOCK] =
			block_sum_squares(op->x + begin, rest < DEVICE_BLOCK ?
					  rest : DEVICE_BLOCK);
	}
}

KERNEL static void scale(float *x, float factor, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		x[i] *= factor;
}

KERNEL static void fill(float *x, float value, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		x[i] = value;
}

KERNEL static void round_to_bfloat(const float *x, uint16_t *y, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		uint32_t bits, even;

		memcpy(&bits, &x[i], sizeof(bits));
		even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
		/* A NaN could round to infinity: cut it, and keep it quiet. */
		y[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ?
				  bits >> 16 | 0x40 : even);
	}
}

KERNEL static void widen_bfloat(const uint16_t *x, float *y, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = (uint32_t)x[i] << 16;

		memcpy(&y[i], &bits, sizeof(bits));
	}
}

void cpu_cast(struct device *device, enum device_cast cast, void *to,
	      const void *from, size_t count)
{
	(void)device;
	if (cast == FLOAT_TO_BFLOAT)
		round_to_bfloat(from, to, count);
	else
		widen_bfloat(from, to, count);
}

void cpu_adamw(struct device *device, const struct op_adamw *op)
{
	(void)device;
	adamw(op);
}

void cpu_sgd(struct device *device, const struct op_sgd *op)
{
	(void)device;
	sgd(op);
}

void cpu_scale(struct device *device, float *x, double factor, size_t count)
{
	(void)device;
	scale(x, (float)factor, count);
}

void cpu_add(struct device *device, float *x, const float *y, size_t count)
{
	(void)device;
	fold_pair(x, y, x, count);
}

void cpu_fill(struct device *device, float *x, float value, size_t count)
{
	(void)device;
	fill(x, value, count);
}
