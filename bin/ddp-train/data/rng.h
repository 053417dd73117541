/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers by counter: each value depends on seed, stream and index
 * alone, so that every rank draws the same sample.
 *
 * Arithmetic is of 64 bits and wraps around. G is 0x9e3779b97f4a7c15, and mix()
 * that of mix.h:
 *
 *   bits(seed, stream, index) = mix(mix(seed + G * stream) + G * index);
 *   uniform = (bits >> 40) / 2^24, in [0, 1);
 *   normal = sqrt(-2 ln u) cos(2 pi v), with u = ((bits >> 32) + 1) / 2^32;
 *   v = (bits mod 2^32) / 2^32 (Box and Muller 1958), in double precision.
 *
 * All functions may be called from any thread.
 */
#ifndef DDP_TRAIN_RNG_H
#define DDP_TRAIN_RNG_H

#include <stdbool.h>
#include <stdint.h>

enum rng_stream {
	RNG_PARAMETER = 1,	/* index: position in the parameters */
	RNG_INPUT = 2,		/* index: sample * values a sample + value */
	RNG_TARGET = 3,		/* likewise */
	RNG_SHUFFLE = 4,	/* the rounds of a permutation */
	RNG_SAMPLE = 5,		/* index: byte that --sample writes */
	RNG_ROUNDING = 6	/* of rounding.h */
};

uint64_t rng_draw_bits(uint64_t seed, enum rng_stream stream, uint64_t index);

/* Uniform in [-bound, bound). */
float rng_draw_uniform(uint64_t seed, enum rng_stream stream, uint64_t index,
		       double bound);

/* Standard normal. */
float rng_draw_normal(uint64_t seed, enum rng_stream stream, uint64_t index);

/*
 * Divides samples among replicas by the contract of PyTorch's
 * DistributedSampler. In each epoch the samples are permuted by seed and epoch
 * alone. The list is made a multiple of the number of replicas: by repeating it
 * from its start, or with drop_last by leaving the last ones out. Replica r
 * takes entries r, r + replicas, r + 2 * replicas, ...
 */
struct sampler {
	uint64_t samples;		/* at least 1; with drop_last at least
					   as many as replicas */
	uint64_t replicas;		/* at least 1 */
	uint64_t seed;
	bool drop_last;
	const uint64_t *permutation;	/* [samples]: instead of our own */
};

/* Samples of each replica in an epoch. */
uint64_t sampler_count(const struct sampler *sampler);

/* The i-th sample of a replica, i < sampler_count(). */
uint64_t sampler_find_sample(const struct sampler *sampler, uint64_t epoch,
			     uint64_t replica, uint64_t i);

/* Returns where sample `index` goes: a permutation of 0 .. count - 1. */
uint64_t sampler_permute(uint64_t index, uint64_t count, uint64_t seed,
			 uint64_t epoch);

#endif
