/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers as functions of a counter. */
#include <math.h>

#include "data/mix.h"
#include "data/rng.h"

uint64_t rng_draw_bits(uint64_t seed, enum rng_stream stream, uint64_t index)
{
	return mix_bits(mix_bits(seed + MIX_GOLDEN * (uint64_t)stream) +
			MIX_GOLDEN * index);
}

float rng_draw_uniform(uint64_t seed, enum rng_stream stream, uint64_t index,
		       double bound)
{
	double u = (double)(rng_draw_bits(seed, stream, index) >> 40) * 0x1p-24;

	return (float)((2 * u - 1) * bound);
}

float rng_draw_normal(uint64_t seed, enum rng_stream stream, uint64_t index)
{
	static const double two_pi = 6.283185307179586;
	uint64_t bits = rng_draw_bits(seed, stream, index);
	double u = (double)((bits >> 32) + 1) * 0x1p-32;
	double v = (double)(bits & 0xffffffff) * 0x1p-32;

	return (float)(sqrt(-2 * log(u)) * cos(two_pi * v));
}
