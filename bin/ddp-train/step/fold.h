/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of sums whose bits must not depend on the layout: a binary tree
 * over n positions. With h the largest power of two below n, position i < n - h
 * adds position i + h; then the same over the first h positions.
 * For n a power of two: i joins i + n/2, then i + n/4, and so on; so positions
 * r, r + N, r + 2N, ... (N a power of two that divides n) form a subtree.
 */
#ifndef DDP_TRAIN_FOLD_H
#define DDP_TRAIN_FOLD_H

#include <stddef.h>

#include "device.h"

/* out[i] = a[i] + b[i], in fp32; out may be a or b. */
void fold_pair(const float *a, const float *b, float *out, size_t count);

/*
 * out[i] = the sum over n >= 1 sources of source[i], for i < count, of values
 * of a type; in fp32, and rounded once. out may be one of the sources; they do
 * not overlap otherwise.
 */
void fold_tree(enum device_type type, const void *const *sources, int n,
	       void *out, size_t count);

/* The same for n doubles; overwrites them. */
double fold_doubles(double *values, int n);

#endif
