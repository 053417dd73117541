/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversions of many values of 16 bits. */
#include "step/half.h"
#include "kernel.h"

KERNEL static void widen_bf16(const uint16_t *from, float *to, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		to[i] = half_from_bf16(from[i]);
}

KERNEL static void widen_fp16(const uint16_t *from, float *to, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		to[i] = half_from_fp16(from[i]);
}

KERNEL static void round_bf16(const float *from, uint16_t *to, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		to[i] = half_to_bf16(from[i]);
}

KERNEL static void round_fp16(const float *from, uint16_t *to, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		to[i] = half_to_fp16(from[i]);
}

void half_widen(enum device_type type, const void *from, float *to,
		size_t count)
{
	if (type == DEVICE_FP32)
		memcpy(to, from, count * sizeof(*to));
	else if (type == DEVICE_BF16)
		widen_bf16(from, to, count);
	else
		widen_fp16(from, to, count);
}

void half_round(enum device_type type, const float *from, void *to,
		size_t count)
{
	if (type == DEVICE_FP32)
		memcpy(to, from, count * sizeof(*from));
	else if (type == DEVICE_BF16)
		round_bf16(from, to, count);
	else
		round_fp16(from, to, count);
}
