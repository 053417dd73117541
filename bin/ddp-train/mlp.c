/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The next byte of a file from the CONTEXT bytes before it: each byte's
 * embedding, one hidden layer of tanh, softmax over 256 (the neural language
 * model of Bengio et al. 2003).
 */
#include <math.h>
#include <string.h>

#include "data.h"
#include "linear.h"
#include "model.h"
#include "rng.h"

enum { CONTEXT = 16, EMBED = 16, IN = CONTEXT * EMBED, HIDDEN = 256,
       BYTES = 256 };

/* The embedding, EMBED floats a byte, lies before the two layers. */
#define EMBED_SIZE ((size_t)BYTES * EMBED)

static const struct linear first = { EMBED_SIZE, IN, HIDDEN };
static const struct linear second = {
	EMBED_SIZE + LINEAR_SIZE(IN, HIDDEN), HIDDEN, BYTES
};

static void mlp_init(float *param, uint64_t seed)
{
	for (size_t i = 0; i < EMBED_SIZE; i++)
		param[i] = rng_normal(seed, RNG_PARAMETER, i);
	linear_init(&first, param, seed);
	linear_init(&second, param, seed);
}

/* The context of one sample of the batch; the target follows it. */
static const unsigned char *context(const struct batch *batch, int row)
{
	const struct data *data = batch->data;
	uint64_t bits = rng_bits(batch->seed, RNG_POSITION,
				 batch->first + (uint64_t)row);

	return data->bytes + bits % (data->size - CONTEXT);
}

static void embed(const float *param, const struct batch *batch, float *x)
{
	for (int row = 0; row < batch->count; row++) {
		const unsigned char *bytes = context(batch, row);

		for (int i = 0; i < CONTEXT; i++, x += EMBED)
			memcpy(x, param + (size_t)bytes[i] * EMBED,
			       EMBED * sizeof(*x));
	}
}

static void embed_backward(const struct batch *batch, const float *dx,
			   float *grad)
{
	memset(grad, 0, EMBED_SIZE * sizeof(*grad));
	for (int row = 0; row < batch->count; row++) {
		const unsigned char *bytes = context(batch, row);

		for (int i = 0; i < CONTEXT; i++, dx += EMBED)
			for (int j = 0; j < EMBED; j++)
				grad[(size_t)bytes[i] * EMBED + j] += dx[j];
	}
}

/* One row's loss; y, the logits, becomes their gradient times scale. */
static double cross_entropy(float *y, int target, float scale)
{
	float max = y[0];
	double sum = 0, loss;

	for (int i = 1; i < BYTES; i++)
		max = y[i] > max ? y[i] : max;
	loss = max - y[target];
	for (int i = 0; i < BYTES; i++) {
		y[i] = expf(y[i] - max);
		sum += y[i];
	}
	for (int i = 0; i < BYTES; i++)
		y[i] *= (float)(scale / sum);
	y[target] -= scale;
	return loss + log(sum);
}

static double mlp_gradient(const float *param, const struct batch *batch,
			   float *work, float *grad)
{
	int rows = batch->count;
	size_t hidden_count = (size_t)rows * HIDDEN;
	float *x = work;
	float *dx = x + (size_t)rows * IN;
	float *h = dx + (size_t)rows * IN;
	float *dh = h + hidden_count;
	float *y = dh + hidden_count;
	double loss = 0;

	embed(param, batch, x);
	linear_forward(&first, param, rows, x, h);
	for (size_t i = 0; i < hidden_count; i++)
		h[i] = tanhf(h[i]);
	linear_forward(&second, param, rows, h, y);
	for (int row = 0; row < rows; row++)
		loss += cross_entropy(y + (size_t)row * BYTES,
				      context(batch, row)[CONTEXT],
				      1.0f / (float)rows);
	linear_backward(&second, param, rows, h, y, grad, dh);
	for (size_t i = 0; i < hidden_count; i++)
		dh[i] *= 1 - h[i] * h[i];
	linear_backward(&first, param, rows, x, dh, grad, dx);
	embed_backward(batch, dx, grad);
	return loss / rows;
}

const struct model model_mlp = {
	.name = "mlp",
	.lr = 0.2,
	.data_size = CONTEXT + 1,
	.param_count = EMBED_SIZE + LINEAR_SIZE(IN, HIDDEN) +
		       LINEAR_SIZE(HIDDEN, BYTES),
	.work_count = 2 * IN + 2 * HIDDEN + BYTES,
	.init = mlp_init,
	.gradient = mlp_gradient
};
