/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stochastic rounding of parameters to bf16, with the same bits on each device.
 *
 * A float's lower 16 bits are what a bfloat lacks. With a random number of 16
 * bits added they carry into the upper ones with the probability of what they
 * are: so the mean of many roundings is the value, and updates that are too
 * small for bf16 are not lost.
 *
 * Value i of the model, after so many updates, gets the upper 16 bits of
 * mix(bits(seed, RNG_ROUNDING, updates) + G * i), as rng.h has mix, bits and G.
 * A step that is skipped is no update, so that its copy stays as it is.
 */
#ifndef DDP_TRAIN_ROUNDING_H
#define DDP_TRAIN_ROUNDING_H

#include "data/mix.h"
#include "data/rng.h"
#include "device.h"

/* Returns the key that all values of an update share. */
MIX_INLINE uint64_t rounding_find_key(const struct rounding *rounding,
				      const struct step_state *state)
{
	uint64_t stream = mix_bits(rounding->seed + MIX_GOLDEN * RNG_ROUNDING);

	return mix_bits(stream + MIX_GOLDEN * state->updates);
}

/*
 * The bits of a float of this value's that bf16 has as well: one of the two
 * beside it. What is above the largest one, infinite or no number stays as it
 * is, to be rounded to nearest: it would have infinity for a neighbour.
 */
MIX_INLINE uint32_t rounding_choose(uint32_t bits, uint64_t key, uint64_t value)
{
	uint32_t part = (uint32_t)(mix_bits(key + MIX_GOLDEN * value) >> 48);
	uint32_t chosen = (bits + part) & 0xffff0000;

	return (bits & 0x7fffffff) < 0x7f7f0000 ? chosen : bits;
}

#endif
