/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the run's type, read as fp32 and rounded once when written, in
 * loops that the compiler vectorises. A loop is written once, in an INLINE
 * function; FOR_TYPE compiles it for each type.
 */
#ifndef DDP_TRAIN_VALUE_H
#define DDP_TRAIN_VALUE_H

#include "step/fold.h"

#define INLINE HALF_INLINE

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

#endif
