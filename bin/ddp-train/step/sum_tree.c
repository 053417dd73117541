/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of 16 bits, and sums in the order of one binary tree. */
#include <string.h>

#include "kernel.h"
#include "step/sum_tree.h"

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

/* ---- sums */

/* Floats that are folded at once, so that halves stay in the nearest cache. */
enum { BLOCK = 1024 };

struct fold {
	enum device_type type;
	const void *const *sources;
	int n, half;		/* half: the largest power of two below n */
	size_t begin, count;	/* the block */
};

static int find_half(int n)
{
	int half = 1;

	while (half < n - half)
		half *= 2;
	return half;
}

KERNEL static void join(const float *a, const float *b, float *out,
			size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		out[i] = a[i] + b[i];
}

void fold_pair(const float *a, const float *b, float *out, size_t count)
{
	join(a, b, out, count);
}

/* The block of source i: where it lies, or in room. */
static const float *read_source(const struct fold *fold, int i, float *room)
{
	const char *at = (const char *)fold->sources[i] +
			 fold->begin * device_type_bytes(fold->type);

	if (fold->type == DEVICE_FP32)
		return (const void *)at;
	half_widen(fold->type, at, room, fold->count);
	return room;
}

/*
 * The block's sum over positions i, i + stride, i + 2 stride, ...; depth first,
 * so that each level needs one block. Writes out last, as it may be a source.
 */
static void fold_node(const struct fold *fold, int i, int stride, float *out)
{
	float left[BLOCK], right[BLOCK];
	const float *source;

	if (stride < fold->half) {
		fold_node(fold, i, 2 * stride, left);
		fold_node(fold, i + stride, 2 * stride, right);
		join(left, right, out, fold->count);
		return;
	}
	source = read_source(fold, i, left);
	if (i < fold->n - fold->half)
		join(source, read_source(fold, i + fold->half, right), out,
		     fold->count);
	else if (out != source)
		memcpy(out, source, fold->count * sizeof(*out));
}

void fold_tree(enum device_type type, const void *const *sources, int n,
	       void *out, size_t count)
{
	struct fold fold = { type, sources, n, find_half(n), 0, 0 };
	size_t bytes = device_type_bytes(type);

	for (; fold.begin < count; fold.begin += BLOCK) {
		size_t rest = count - fold.begin;
		char *to = (char *)out + fold.begin * bytes;
		float sum[BLOCK];

		fold.count = rest < BLOCK ? rest : BLOCK;
		if (type == DEVICE_FP32) {
			fold_node(&fold, 0, 1, (void *)to);
			continue;
		}
		fold_node(&fold, 0, 1, sum);
		half_round(type, sum, to, fold.count);
	}
}

double fold_doubles(double *values, int n)
{
	for (int half = find_half(n); n > 1; n = half, half /= 2)
		for (int i = 0; i < n - half; i++)
			values[i] += values[i + half];
	return values[0];
}
