/* SPDX-License-Identifier: BSD-3-Clause */
/* A linear layer y = x W^T + b within a flat array of parameters. */
#ifndef DDP_TRAIN_LINEAR_H
#define DDP_TRAIN_LINEAR_H

#include <stddef.h>
#include <stdint.h>

/* Floats that a layer takes: W[out][in], then b[out]. */
#define LINEAR_SIZE(in, out) ((size_t)(in) * (out) + (out))

struct linear {
	size_t offset;		/* of W in the flat array */
	int in, out;
};

/* W and b uniform in +-1/sqrt(in), as PyTorch's nn.Linear begins. */
void linear_init(const struct linear *layer, float *param, uint64_t seed);

/* x[rows][in] -> y[rows][out] */
void linear_forward(const struct linear *layer, const float *param, int rows,
		    const float *x, float *y);

/* The same way back: writes the layer's part of grad, and dx unless NULL. */
void linear_backward(const struct linear *layer, const float *param, int rows,
		     const float *x, const float *dy, float *grad, float *dx);

#endif
