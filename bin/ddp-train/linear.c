/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include <cblas.h>

#include "linear.h"
#include "rng.h"

static size_t bias_offset(const struct linear *layer)
{
	return layer->offset + (size_t)layer->in * (size_t)layer->out;
}

void linear_init(const struct linear *layer, float *param, uint64_t seed)
{
	double bound = 1 / sqrt(layer->in);
	size_t end = layer->offset + LINEAR_SIZE(layer->in, layer->out);

	for (size_t i = layer->offset; i < end; i++)
		param[i] = rng_uniform(seed, RNG_PARAMETER, i, bound);
}

void linear_forward(const struct linear *layer, const float *param, int rows,
		    const float *x, float *y)
{
	int in = layer->in, out = layer->out;
	const float *bias = param + bias_offset(layer);

	for (int r = 0; r < rows; r++)
		memcpy(y + (size_t)r * out, bias, out * sizeof(*y));
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, out, in,
		    1, x, in, param + layer->offset, in, 1, y, out);
}

void linear_backward(const struct linear *layer, const float *param, int rows,
		     const float *x, const float *dy, float *grad, float *dx)
{
	int in = layer->in, out = layer->out;
	float *bias = grad + bias_offset(layer);

	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, rows,
		    1, dy, out, x, in, 0, grad + layer->offset, in);
	memset(bias, 0, out * sizeof(*bias));
	for (int r = 0; r < rows; r++)
		cblas_saxpy(out, 1, dy + (size_t)r * out, 1, bias, 1);
	if (dx)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows,
			    in, out, 1, dy, out, param + layer->offset, in,
			    0, dx, in);
}
