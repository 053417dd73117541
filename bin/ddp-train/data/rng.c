/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers as functions of a counter, and samples in an order by them. */
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

/* ---- samples */

/* 8 rounds are too few: 200,000 permutations of 8 samples are not uniform. */
enum { ROUNDS = 16 };

/* One pass of a Feistel network over two halves of `half` bits each. */
static uint64_t scramble_bits(uint64_t value, int half, uint64_t key)
{
	uint64_t mask = (UINT64_C(1) << half) - 1;
	uint64_t left = value >> half, right = value & mask;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t bits = rng_draw_bits(key, RNG_SHUFFLE,
					      round << 32 | right);
		uint64_t next = left ^ (bits & mask);

		left = right;
		right = next;
	}
	return left << half | right;
}

/*
 * A cipher is a permutation that needs no memory. It works on an even number
 * of bits, so on up to four times as many numbers as there are samples. A
 * result that is too large is enciphered again until it is small enough, which
 * keeps it one to one (cycle walking: Black and Rogaway 2002).
 */
uint64_t sampler_permute(uint64_t index, uint64_t count, uint64_t seed,
			 uint64_t epoch)
{
	uint64_t key = rng_draw_bits(seed, RNG_SHUFFLE, epoch);
	int half = 0;

	while (half < 32 && (count - 1) >> (2 * half))
		half++;
	do
		index = scramble_bits(index, half, key);
	while (index >= count);
	return index;
}

uint64_t sampler_count(const struct sampler *sampler)
{
	uint64_t left_over = sampler->samples % sampler->replicas;

	return sampler->samples / sampler->replicas +
	       (left_over && !sampler->drop_last);
}

uint64_t sampler_find_sample(const struct sampler *sampler, uint64_t epoch,
			     uint64_t replica, uint64_t i)
{
	uint64_t place = (i * sampler->replicas + replica) % sampler->samples;

	if (sampler->permutation)
		return sampler->permutation[place];
	return sampler_permute(place, sampler->samples, sampler->seed, epoch);
}
