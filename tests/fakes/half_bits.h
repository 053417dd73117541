/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 16-bit values as bits, for fakes of libraries: not the code that is tested.
 * Rounded to nearest, ties to even.
 */
#ifndef DDP_TESTS_HALF_BITS_H
#define DDP_TESTS_HALF_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_float(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, 4);
	return bits;
}

static inline float float_of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, 4);
	return x;
}

static inline float float_of_bf16(uint16_t h)
{
	return float_of_bits((uint32_t)h << 16);
}

static inline uint16_t bf16_of_float(float x)
{
	uint32_t bits = bits_of_float(x);

	if (x != x)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The exponent's bias is changed by a product, exact for subnormals too. */
static inline float float_of_fp16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	float x = float_of_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
	uint32_t bits = bits_of_float(x);

	if ((h & 0x7c00) == 0x7c00)
		bits |= 0x7f800000;
	return float_of_bits(bits | sign);
}

static inline uint16_t fp16_of_float(float x)
{
	uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000;

	bits &= 0x7fffffff;
	if (bits > 0x7f800000)		/* NaN */
		return (uint16_t)(sign | 0x7e00 | (bits >> 13 & 0x3ff));
	if (bits >= 0x47800000)		/* 65536 */
		return (uint16_t)(sign | 0x7c00);
	if (bits < 0x38800000)		/* 2^-14: what is below is subnormal */
		return (uint16_t)(sign | (bits_of_float(float_of_bits(bits) +
			0.5f) - bits_of_float(0.5f)));
	bits += 0xfff + (bits >> 13 & 1);
	return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}

#endif
