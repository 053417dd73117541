/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network of PyTorch's DDP tutorial, Linear(10, 10), ReLU, Linear(10, 5),
 * and the mean squared error on random normal data. It always computes on the
 * host, sample by sample.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/rng.h"
#include "model.h"
#include "step/sum_tree.h"
#include "util/error.h"

enum { IN = 10, HIDDEN = 10, OUT = 5 };
enum { BIAS_2, WEIGHT_2, BIAS_1, WEIGHT_1, TENSORS };

static const struct tensor shapes[TENSORS] = {
	[BIAS_2] = { .name = "2.bias", .rows = 1, .columns = OUT },
	[WEIGHT_2] = { .name = "2.weight", .rows = OUT, .columns = HIDDEN,
		       .decay = true },
	[BIAS_1] = { .name = "0.bias", .rows = 1, .columns = HIDDEN },
	[WEIGHT_1] = { .name = "0.weight", .rows = HIDDEN, .columns = IN,
		       .decay = true }
};

struct toy {
	struct model model;		/* the first member */
	struct tensor tensors[TENSORS];
};

/* The host memory has param, grad and room[param_count], and the loss. */
static float *get_param(const struct model *model)
{
	return (void *)model->memory[SPACE_HOST];
}

static float *get_grad(const struct model *model)
{
	return get_param(model) + model->param_count;
}

/* The room's values are of the device's type. */
static void *get_room(const struct model *model)
{
	return get_grad(model) + model->param_count;
}

static double *get_loss(const struct model *model)
{
	return (void *)(get_grad(model) + 2 * model->param_count);
}

/* Draws as PyTorch's Linear, in its order: first layer, weight before bias. */
static void init_parameters(const struct model *model, uint64_t seed,
			    float *param)
{
	uint64_t index = 0;

	memset(param, 0, model->param_count * sizeof(*param));
	for (int i = TENSORS - 1; i >= 0; i--) {
		const struct tensor *tensor = &model->tensors[i];
		double bound = 1 / sqrt(i >= BIAS_1 ? IN : HIDDEN);

		for (size_t j = 0; j < tensor->count; j++)
			param[tensor->offset + j] = rng_draw_uniform(seed,
				RNG_PARAMETER, index++, bound);
	}
}

static void multiply(const float *weight, const float *bias, int in, int out,
		     const float *x, float *y)
{
	for (int o = 0; o < out; o++) {
		y[o] = bias[o];
		for (int i = 0; i < in; i++)
			y[o] += weight[o * in + i] * x[i];
	}
}

/* Adds to the gradients of weight, bias and x (NULL: unwanted). */
static void multiply_backward(const float *weight, int in, int out,
			      const float *x, const float *dy, float *dweight,
			      float *dbias, float *dx)
{
	for (int o = 0; o < out; o++) {
		dbias[o] += dy[o];
		for (int i = 0; i < in; i++) {
			dweight[o * in + i] += dy[o] * x[i];
			if (dx)
				dx[i] += dy[o] * weight[o * in + i];
		}
	}
}

/* The loss of one sample; its gradient, times scale, is added to grad. */
static double add_sample(const struct model *model, uint64_t sample,
			 double scale, float *grad)
{
	const struct tensor *at = model->tensors;
	const float *param = get_param(model);
	float x[IN], h[HIDDEN], y[OUT], dh[HIDDEN] = { 0 }, dy[OUT];
	double loss = 0;

	for (int i = 0; i < IN; i++)
		x[i] = rng_draw_normal(model->seed, RNG_INPUT, sample * IN + i);
	multiply(param + at[WEIGHT_1].offset, param + at[BIAS_1].offset, IN,
		 HIDDEN, x, h);
	for (int i = 0; i < HIDDEN; i++)
		h[i] = h[i] < 0 ? 0 : h[i];
	multiply(param + at[WEIGHT_2].offset, param + at[BIAS_2].offset, HIDDEN,
		 OUT, h, y);
	for (int i = 0; i < OUT; i++) {
		double difference = y[i] - rng_draw_normal(
			model->seed, RNG_TARGET, sample * OUT + i);

		loss += difference * difference / OUT;
		dy[i] = (float)(scale * 2 * difference / OUT);
	}
	multiply_backward(param + at[WEIGHT_2].offset, HIDDEN, OUT, h, dy,
			  grad + at[WEIGHT_2].offset, grad + at[BIAS_2].offset,
			  dh);
	for (int i = 0; i < HIDDEN; i++)
		dh[i] = h[i] > 0 ? dh[i] : 0;
	multiply_backward(param + at[WEIGHT_1].offset, IN, HIDDEN, x, dh,
			  grad + at[WEIGHT_1].offset, grad + at[BIAS_1].offset,
			  NULL);
	return loss;
}

/* The loss of a batch; its gradient is added to host_grad(). */
static void add_batch(const struct model *model, struct device *device,
		      const struct batch *batch,
		      const struct backward *backward, double *loss)
{
	double sum = 0, loss_scale = 1;

	if (backward->loss_scale)
		device_fetch(device, &loss_scale, backward->loss_scale,
			     sizeof(loss_scale));
	for (int i = 0; i < batch->sequences; i++)
		sum += add_sample(model, batch->samples[i],
				  backward->scale * loss_scale,
				  get_grad(model));
	*get_loss(model) = backward->scale * sum;
	device->table->copy(device, QUEUE_COMPUTE, loss, get_loss(model),
			    sizeof(*loss));
}

static void compute_gradient(const struct model *model, struct device *device,
			     const void *param, const struct batch *batch,
			     const struct backward *backward, void *grad,
			     double *loss)
{
	size_t count = model->param_count;
	size_t bytes = count * device_type_bytes(device->type);

	device_fetch(device, get_room(model), param, bytes);
	half_widen(device->type, get_room(model), get_param(model), count);
	if (backward->accumulate)
		device_fetch(device, get_grad(model), grad, bytes);
	else
		memset(get_grad(model), 0, count * sizeof(float));
	add_batch(model, device, batch, backward, loss);
	half_round(device->type, get_grad(model), get_room(model), count);
	device->table->copy(device, QUEUE_COMPUTE, grad, get_room(model),
			    bytes);
	if (backward->progress)
		backward->progress(backward->context, model->param_count);
}

struct model *toy_create(uint64_t seed, struct ddp_error *error)
{
	struct toy *toy = calloc(1, sizeof(*toy));
	struct model *model;

	if (!toy) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			      "toy's list of tensors");
		return NULL;
	}
	memcpy(toy->tensors, shapes, sizeof(shapes));
	model = &toy->model;
	*model = (struct model){
		.name = "toy", .seed = seed,
		.tensors = toy->tensors, .tensor_count = TENSORS,
		.init = init_parameters, .gradient = compute_gradient
	};
	model->param_count = model_lay_out(toy->tensors, TENSORS);
	model->bytes[SPACE_HOST] = 3 * model->param_count * sizeof(float) +
				   sizeof(double);
	return model;
}
