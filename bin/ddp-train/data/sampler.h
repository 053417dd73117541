/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divides samples among replicas by the contract of PyTorch's
 * DistributedSampler. In each epoch the samples are permuted by seed and epoch
 * alone. The list is made a multiple of the number of replicas: by repeating it
 * from its start, or with drop_last by leaving the last ones out. Replica r
 * takes entries r, r + replicas, r + 2 * replicas, ...
 *
 * Pure: every call is a function of its arguments; any thread.
 */
#ifndef DDP_TRAIN_SAMPLER_H
#define DDP_TRAIN_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

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
