/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of sums whose bits must not depend on the layout: a binary tree
 * over n positions. With h the largest power of two below n, position i < n - h
 * adds position i + h; then the same over the first h positions.
 * For n a power of two: i joins i + n/2, then i + n/4, and so on; so positions
 * r, r + N, r + 2N, ... (N a power of two that divides n) form a subtree.
 */
#ifndef DDP_TRAIN_SUM_TREE_H
#define DDP_TRAIN_SUM_TREE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device.h"

/* out[i] = a[i] + b[i], in fp32; out may be a or b. */
void fold_pair(const float *a, const float *b, float *out, size_t count);

/*
 * out[i] = the sum over n >= 1 sources of source[i], for i < count, of values
 * of a type; in fp32, and rounded once. out may be one of the sources; they do
 * not overlap otherwise.
 */
void fold_tree(enum device_type type, const void *const *sources, int n,
	       void *out, size_t count);

/* The same for n doubles; overwrites them. */
double fold_doubles(double *values, int n);

/*
 * Values of 16 bits as fp32 and back, to nearest, ties to even; NaN stays NaN.
 * Without branches, so that the compiler vectorises a loop of them for any
 * machine. A half has 5 bits of exponent (bias 15) and 10 of fraction; a bfloat
 * is the upper half of a float.
 */
#define HALF_INLINE static inline __attribute__((always_inline))

HALF_INLINE uint32_t half_get_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

HALF_INLINE float half_make_float(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

HALF_INLINE float half_from_bf16(uint16_t x)
{
	return half_make_float((uint32_t)x << 16);
}

/*
 * Rounding could make a NaN infinite: it is cut, and gets the quiet bit. By
 * arithmetic, not by conditions, which keep gcc from vectorising longer loops.
 */
HALF_INLINE uint16_t half_to_bf16(float x)
{
	uint32_t bits = half_get_bits(x);
	uint32_t nan = (0x7f800000 - (bits & 0x7fffffff)) >> 31;
	uint32_t rest = 0x7fff + (bits >> 16 & 1);

	return (uint16_t)((bits + (rest & (nan - 1))) >> 16 | nan << 6);
}

/*
 * The exponent and the fraction move to where fp32 has them, and 2^112 makes up
 * for the difference of the biases: so one below normal becomes right as well.
 */
HALF_INLINE float half_from_fp16(uint16_t x)
{
	uint32_t size = (uint32_t)(x & 0x7fff) << 13;
	uint32_t bits = half_get_bits(half_make_float(size) * 0x1p112f);

	bits |= size >= 0x0f800000 ? 0x7f800000 : 0;	/* infinite, or NaN */
	return half_make_float(bits | (uint32_t)(x & 0x8000) << 16);
}

/*
 * The sum with 2^13 times x's power of two, at least 2^-14, has the last bit of
 * a half as its own last one, and so rounds there. From 65520 on it becomes
 * 65536, whose bits are infinity's. What gcc computes for some values only, as
 * a float behind a condition, it does not vectorise.
 */
HALF_INLINE uint16_t half_to_fp16(float x)
{
	uint32_t bits = half_get_bits(x), size = bits & 0x7fffffff;
	uint32_t most = size < 143u << 23 ? size : 143u << 23;
	uint32_t power = most & 0x7f800000;
	float shift = half_make_float((power > 113u << 23 ? power :
				       113u << 23) + (13u << 23));
	float rounded = half_make_float(most) + shift - shift;
	uint32_t half = half_get_bits(rounded * 0x1p-112f) >> 13;
	uint32_t nan = size > 0x7f800000 ? 0x200 | (size >> 13 & 0x3ff) : 0;

	return (uint16_t)(half | nan | (bits >> 16 & 0x8000));
}

/* Values of a type as fp32, and rounded to it; they do not overlap. */
void half_widen(enum device_type type, const void *from, float *to,
		size_t count);
void half_round(enum device_type type, const float *from, void *to,
		size_t count);

#endif
