/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bits of random numbers, for hosts and GPUs alike: the finaliser of
 * SplitMix64 (Steele, Lea, Flood 2014), which takes one number to another, one
 * to one.
 */
#ifndef DDP_TRAIN_MIX_H
#define DDP_TRAIN_MIX_H

#include <stdint.h>

#ifdef __CUDACC__
#define MIX_INLINE static __forceinline__ __host__ __device__
#else
#define MIX_INLINE static inline __attribute__((always_inline))
#endif

/* The distance of counters that are mixed: 2^64 over the golden ratio. */
#define MIX_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

MIX_INLINE uint64_t mix_bits(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
