/* SPDX-License-Identifier: BSD-3-Clause */
/* The update of a step: learning rate, norm of the gradient, optimizer. */
#define _GNU_SOURCE
#include <math.h>

#include "collective.h"
#include "model.h"
#include "trainer.h"

double trainer_find_lr(const struct options *options, uint64_t step)
{
	static const double pi = 3.141592653589793;
	double warm = (double)options->warmup, done;

	if (step <= options->warmup)
		return options->lr * (double)step / warm;
	if (options->schedule == SCHEDULE_CONSTANT ||
	    options->steps <= options->warmup + 1)
		return options->lr;
	done = (double)(step - options->warmup - 1) /
	       (double)(options->steps - options->warmup - 1);
	return options->lr - (options->lr - options->min_lr) *
	       (1 - cos(pi * done)) / 2;
}

double trainer_compute_norm(struct trainer *trainer)
{
	struct device *device = &trainer->device;
	struct op_sum_squares op = {
		.count = trainer->model->param_count,
		.x = trainer->levels[0], .blocks = trainer->blocks
	};
	size_t count = (op.count + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
	double sum = 0;

	device->table->sum_squares(device, &op);
	device_fetch(device, trainer->host_blocks, trainer->blocks,
		     count * sizeof(double));
	for (size_t i = 0; i < count; i++)
		sum += trainer->host_blocks[i];
	return sqrt(sum);
}

static void update_tensor(struct trainer *trainer, const struct tensor *tensor,
			  uint64_t step, double scale)
{
	const struct options *options = trainer->options;
	struct device *device = &trainer->device;
	float *param = trainer->param + tensor->offset;
	const float *grad = trainer->levels[0] + tensor->offset;
	float *v = trainer->v ? trainer->v + tensor->offset : NULL;
	double lr = trainer_find_lr(options, step);
	double decay = tensor->decay ? options->decay : 0;
	double updates = (double)trainer->updates;

	if (options->optimizer == OPTIMIZER_SGD)
		device->table->sgd(device, &(struct op_sgd){
			.count = tensor->count, .param = param, .grad = grad,
			.v = v, .lr = lr, .momentum = options->momentum,
			.decay = decay, .scale = scale });
	else
		device->table->adamw(device, &(struct op_adamw){
			.count = tensor->count, .param = param, .grad = grad,
			.m = trainer->m + tensor->offset, .v = v, .lr = lr,
			.beta1 = options->beta1, .beta2 = options->beta2,
			.eps = options->eps, .decay = decay, .scale = scale,
			.correction1 = 1 - pow(options->beta1, updates),
			.correction2 = 1 - pow(options->beta2, updates) });
}

void trainer_update(struct trainer *trainer, uint64_t step, double norm)
{
	const struct model *model = trainer->model;
	double clip = trainer->options->clip;
	/* As torch.nn.utils.clip_grad_norm_ does. */
	double scale = clip > 0 && norm + 1e-6 > clip ? clip / (norm + 1e-6) :
							1;

	trainer->updates++;
	for (int i = 0; i < model->tensor_count; i++)
		update_tensor(trainer, &model->tensors[i], step, scale);
}
