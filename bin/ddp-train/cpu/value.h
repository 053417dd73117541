/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the run's type, read as fp32 and rounded once when written, in
 * loops that the compiler vectorises. A loop is written once, in an INLINE
 * function; FOR_TYPE compiles it for each type.
 */
#ifndef DDP_TRAIN_VALUE_H
#define DDP_TRAIN_VALUE_H

#include <math.h>

#include "step/sum_tree.h"

#define INLINE HALF_INLINE

/* Parts of the sum over a row, for vectors of any length. */
enum { LANES = 16 };

/* Runs a call, in which T is the constant that type is equal to. */
#define FOR_TYPE(type, ...) do {				\
	if ((type) == DEVICE_BF16) {				\
		const enum device_type T = DEVICE_BF16;	\
		__VA_ARGS__;					\
	} else if ((type) == DEVICE_FP16) {			\
		const enum device_type T = DEVICE_FP16;	\
		__VA_ARGS__;					\
	} else {						\
		const enum device_type T = DEVICE_FP32;	\
		__VA_ARGS__;					\
	}							\
} while (0)

INLINE float load(enum device_type type, const void *x, size_t i)
{
	if (type == DEVICE_BF16)
		return half_from_bf16(((const uint16_t *)x)[i]);
	if (type == DEVICE_FP16)
		return half_from_fp16(((const uint16_t *)x)[i]);
	return ((const float *)x)[i];
}

INLINE void save(enum device_type type, void *x, size_t i, float value)
{
	if (type == DEVICE_BF16)
		((uint16_t *)x)[i] = half_to_bf16(value);
	else if (type == DEVICE_FP16)
		((uint16_t *)x)[i] = half_to_fp16(value);
	else
		((float *)x)[i] = value;
}

INLINE void round_row(enum device_type type, const float *x, int count,
		      void *to)
{
#pragma omp simd
	for (int i = 0; i < count; i++)
		save(type, to, i, x[i]);
}

/*
 * exp() and reductions for loops that the compiler vectorises: libm's exp()
 * stops it, and it folds the lanes of a vector one after the other.
 */
INLINE int round_to_lanes(int count)
{
	return (count + LANES - 1) / LANES * LANES;
}

/*
 * The limit if x is beyond it, else x, as which NaN counts. By bits: gcc makes
 * branches of conditions, and does not vectorise a loop that has them.
 */
INLINE float vlimit(float x, bool beyond, float limit)
{
	uint32_t mask = -(uint32_t)beyond;

	return half_make_float((half_get_bits(x) & ~mask) |
			       (half_get_bits(limit) & mask));
}

/*
 * Returns exp(x) for x up to 88, within 3 units in the last place. Returns 0
 * below -87, where exp(x) is near the smallest normal number, and NaN for NaN.
 * With n the integer nearest to x / ln 2 and r = x - n ln 2, it is 2^n exp(r).
 * exp(r) is the polynomial of degree 5 whose largest relative error is least
 * (1e-7).
 */
INLINE float vexp(float x)
{
	const float to_integer = 12582912;	/* 1.5 * 2^23 */
	float y = vlimit(x, x < -87, -88);	/* where the power is 0 */
	float shifted = y * 1.44269504f + to_integer;
	float n = shifted - to_integer;
	/* ln 2 in two parts, of which the first times n is exact */
	float r = y - n * 0.693359375f - n * -2.12194440e-4f;
	float r2 = r * r;
	float high = 8.312510327e-03f * r + 4.189024493e-02f;
	float low = 1.666711569e-01f * r + 4.999923110e-01f;
	float p = (high * r2 + low) * r2 + (r + 1);
	float power = half_make_float((half_get_bits(shifted) + 127) << 23);

	return p * power;
}

/* count is a multiple of LANES here and below. */
INLINE float vmax(const float *x, int count)
{
	float lanes[LANES];

	for (int i = 0; i < LANES; i++)
		lanes[i] = -INFINITY;
	for (int begin = 0; begin < count; begin += LANES) {
#pragma omp simd
		for (int i = 0; i < LANES; i++)
			lanes[i] = x[begin + i] > lanes[i] ? x[begin + i] :
							     lanes[i];
	}
	for (int half = LANES / 2; half > 0; half /= 2) {
		for (int i = 0; i < half; i++)
			lanes[i] = lanes[i + half] > lanes[i] ?
				   lanes[i + half] : lanes[i];
	}
	return lanes[0];
}

/* x = exp(x - max); returns the sum */
INLINE float vexp_sum(float *x, float max, int count)
{
	float lanes[LANES] = { 0 };

	for (int begin = 0; begin < count; begin += LANES) {
#pragma omp simd
		for (int i = 0; i < LANES; i++) {
			x[begin + i] = vexp(x[begin + i] - max);
			lanes[i] += x[begin + i];
		}
	}
	for (int half = LANES / 2; half > 0; half /= 2) {
		for (int i = 0; i < half; i++)
			lanes[i] += lanes[i + half];
	}
	return lanes[0];
}

/*
 * The row becomes exp(x - max) / sum * scale, in which what lies past count,
 * up to the next multiple of LANES, is 0. Returns max + log(sum).
 */
INLINE double vsoftmax(float *x, int count, float scale)
{
	int whole = round_to_lanes(count), last = whole - LANES;
	float max, sum;

#pragma omp simd
	for (int i = 0; i < LANES; i++)
		x[last + i] = last + i < count ? x[last + i] : -INFINITY;
	max = vmax(x, whole);
	sum = vexp_sum(x, max, whole);
	scale /= sum;
#pragma omp simd
	for (int i = 0; i < whole; i++)
		x[i] *= scale;
	return max + log(sum);
}

#endif
