/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of tensors: what a thread computes at once in operators that go through
 * a tensor value by value. Such an operator may begin at any value: the first
 * part is so much shorter that the others begin at multiples of 16 bytes in one
 * of the operands. In the others each part is read and written at once, too, if
 * it is so aligned there, and else value by value.
 */
#ifndef DDP_TRAIN_PART_H
#define DDP_TRAIN_PART_H

#include <stddef.h>

#include "cuda/gpu.h"

enum {
	PART = 4,		/* values; of fp32 16 bytes */
	PARTS = 4,		/* of a thread, one after the other */
	PART_THREADS = 256	/* of a block */
};

typedef pack<float, PART> floats;

/* Values begin .. begin + PART - 1 of count; shorter at the ends. */
struct part {
	ptrdiff_t begin, count;
};

/* Returns by how many values parts begin earlier than x, to be aligned in x. */
template <class T> static inline int find_shift(const T *x)
{
	return (int)((uintptr_t)x / sizeof(T) % PART);
}

static inline unsigned count_part_blocks(size_t count, int shift)
{
	size_t values = PART * PARTS * PART_THREADS;

	return (unsigned)((count + (size_t)shift + values - 1) / values);
}

/* This thread's part i; those of neighbours lie side by side. */
__device__ inline part find_part(int i, int shift, size_t count)
{
	size_t number = ((size_t)blockIdx.x * PARTS + i) * PART_THREADS +
			threadIdx.x;

	return { (ptrdiff_t)(number * PART) - shift, (ptrdiff_t)count };
}

template <class T> __device__ inline bool is_whole(const T *x, part at)
{
	return at.begin >= 0 && at.begin + PART <= at.count &&
	       (uintptr_t)(x + at.begin) % sizeof(pack<T, PART>) == 0;
}

/* Uses one instruction: nvcc would join it with those of short parts. */
__device__ inline void store_whole(float *to, const floats &values)
{
	__stcs((uint4 *)to, *(const uint4 *)&values);
}

template <class T>
__device__ inline void store_whole(T *to, const pack<T, PART> &values)
{
	__stcs((uint2 *)to, *(const uint2 *)&values);
}

/* Zeros beside the tensor. */
template <class T> __device__ inline floats read_part(const T *x, part at)
{
	pack<T, PART> values = {};
	floats wide;

	if (is_whole(x, at)) {
		values = load_pack<PART>(x + at.begin);
	} else {
#pragma unroll
		for (int j = 0; j < PART; j++)
			if (at.begin + j >= 0 && at.begin + j < at.count)
				values.at[j] = x[at.begin + j];
	}
#pragma unroll
	for (int j = 0; j < PART; j++)
		wide.at[j] = widen(values.at[j]);
	return wide;
}

/* Rounds; leaves alone what is beside the tensor. */
template <class T> __device__ inline void write_part(T *x, part at, floats wide)
{
	pack<T, PART> values;

#pragma unroll
	for (int j = 0; j < PART; j++)
		values.at[j] = narrow<T>(wide.at[j]);
	if (is_whole(x, at)) {
		store_whole(x + at.begin, values);
		return;
	}
#pragma unroll
	for (int j = 0; j < PART; j++)
		if (at.begin + j >= 0 && at.begin + j < at.count)
			x[at.begin + j] = values.at[j];
}

#endif
