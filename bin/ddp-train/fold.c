/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums in the order of one binary tree. */
#include <string.h>

#include "fold.h"
#include "kernel.h"

/* Floats that are folded at once, so that halves stay in the nearest cache. */
enum { BLOCK = 1024 };

struct fold {
	const float *const *sources;
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

/*
 * The block's sum over positions i, i + stride, i + 2 stride, ...; depth first,
 * so that each level needs one block. Writes out last, as it may be a source.
 */
static void fold_node(const struct fold *fold, int i, int stride, float *out)
{
	const float *source = fold->sources[i] + fold->begin;

	if (stride < fold->half) {
		float left[BLOCK], right[BLOCK];

		fold_node(fold, i, 2 * stride, left);
		fold_node(fold, i + stride, 2 * stride, right);
		join(left, right, out, fold->count);
	} else if (i < fold->n - fold->half) {
		join(source, fold->sources[i + fold->half] + fold->begin, out,
		     fold->count);
	} else if (out != source) {
		memcpy(out, source, fold->count * sizeof(*out));
	}
}

void fold_tree(const float *const *sources, int n, float *out, size_t count)
{
	struct fold fold = { sources, n, find_half(n), 0, 0 };

	for (; fold.begin < count; fold.begin += BLOCK) {
		size_t rest = count - fold.begin;

		fold.count = rest < BLOCK ? rest : BLOCK;
		fold_node(&fold, 0, 1, out + fold.begin);
	}
}

double fold_doubles(double *values, int n)
{
	for (int half = find_half(n); n > 1; n = half, half /= 2)
		for (int i = 0; i < n - half; i++)
			values[i] += values[i + half];
	return values[0];
}
