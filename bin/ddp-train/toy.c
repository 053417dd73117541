/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of PyTorch's DDP tutorial on random normal data. */
#include "linear.h"
#include "model.h"
#include "rng.h"

enum { IN = 10, HIDDEN = 10, OUT = 5 };

static const struct linear first = { 0, IN, HIDDEN };
static const struct linear second = { LINEAR_SIZE(IN, HIDDEN), HIDDEN, OUT };

static void toy_init(float *param, uint64_t seed)
{
	linear_init(&first, param, seed);
	linear_init(&second, param, seed);
}

static void draw(const struct batch *batch, enum rng_stream stream, int width,
		 float *values)
{
	uint64_t begin = batch->first * (uint64_t)width;
	size_t count = (size_t)batch->count * (size_t)width;

	for (size_t i = 0; i < count; i++)
		values[i] = rng_normal(batch->seed, stream, begin + i);
}

/* Mean squared error over all outputs; target becomes the gradient of y. */
static double squared_error(const float *y, float *target, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		float difference = y[i] - target[i];

		sum += (double)difference * difference;
		target[i] = 2 * difference / (float)count;
	}
	return sum / (double)count;
}

static double toy_gradient(const float *param, const struct batch *batch,
			   float *work, float *grad)
{
	int rows = batch->count;
	size_t hidden_count = (size_t)rows * HIDDEN;
	float *x = work;
	float *h = x + (size_t)rows * IN;
	float *dh = h + hidden_count;
	float *y = dh + hidden_count;
	float *target = y + (size_t)rows * OUT;
	double loss;

	draw(batch, RNG_INPUT, IN, x);
	draw(batch, RNG_TARGET, OUT, target);
	linear_forward(&first, param, rows, x, h);
	for (size_t i = 0; i < hidden_count; i++)
		h[i] = h[i] > 0 ? h[i] : 0;
	linear_forward(&second, param, rows, h, y);
	loss = squared_error(y, target, (size_t)rows * OUT);
	linear_backward(&second, param, rows, h, target, grad, dh);
	for (size_t i = 0; i < hidden_count; i++)
		dh[i] = h[i] > 0 ? dh[i] : 0;
	linear_backward(&first, param, rows, x, dh, grad, NULL);
	return loss;
}

const struct model model_toy = {
	.name = "toy",
	.lr = 0.001,
	.param_count = LINEAR_SIZE(IN, HIDDEN) + LINEAR_SIZE(HIDDEN, OUT),
	.work_count = IN + 2 * HIDDEN + 2 * OUT,
	.init = toy_init,
	.gradient = toy_gradient
};
