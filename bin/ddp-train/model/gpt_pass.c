/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPT's forward and backward pass, by operators of any device. */
#include "model/gpt.h"

static const float epsilon = 1e-5f;

struct pass {
	const struct gpt *gpt;
	struct device *device;
	const struct device_table *run;
	const float *param;
	const struct batch *batch;
	int rows;
	const struct backward *backward;
	float *grad;			/* NULL: forward alone */
};

static struct pass begin(const struct model *model, struct device *device,
			 const float *param, const struct batch *batch)
{
	const struct gpt *gpt = (const struct gpt *)model;

	return (struct pass){
		.gpt = gpt, .device = device, .run = device->table,
		.param = param, .batch = batch,
		.rows = batch->sequences * gpt->context
	};
}

/* The floats before tensor number i of PyTorch's order. */
static size_t offset(const struct pass *pass, int i)
{
	return pass->gpt->tensors[gpt_tensor(pass->gpt, i)].offset;
}

static int number(int layer, enum gpt_part part)
{
	return GPT_LAYERS + layer * GPT_PARTS + (int)part;
}

static const float *weight(const struct pass *pass, int i)
{
	return pass->param + offset(pass, i);
}

static float *gradient(const struct pass *pass, int i)
{
	return pass->grad + offset(pass, i);
}

static float *memory(const struct pass *pass)
{
	return (void *)pass->gpt->model.memory[SPACE_DEVICE];
}

static float *kept(const struct pass *pass, int layer, enum gpt_kept which)
{
	return memory(pass) + (size_t)layer * pass->gpt->layer_size +
	       pass->gpt->kept[which];
}

static float *scratch(const struct pass *pass, enum gpt_scratch which)
{
	return memory(pass) + pass->gpt->scratch[which];
}

/* x becomes x + branch, where it is kept, unless x is NULL: it lies there. */
static void norm(const struct pass *pass, int layer, enum gpt_part part,
		 const float *x)
{
	bool first = part == GPT_NORM_1;
	float *sum = kept(pass, layer, first ? GPT_SUM_1 : GPT_SUM_2);

	pass->run->norm(pass->device, &(struct op_norm){
		.rows = pass->rows, .width = pass->gpt->width, .eps = epsilon,
		.x = x ? x : sum,
		.residual = x ? scratch(pass, GPT_BRANCH) : NULL,
		.gain = weight(pass, number(layer, part)),
		.bias = weight(pass, number(layer, part) + 1),
		.sum = sum, .out = scratch(pass, GPT_NORMED),
		.mean = kept(pass, layer, first ? GPT_MEAN_1 : GPT_MEAN_2),
		.rstd = kept(pass, layer, first ? GPT_RSTD_1 : GPT_RSTD_2)
	});
}

/* in and out in widths */
static void linear(const struct pass *pass, int layer, enum gpt_part part,
		   int in, int out, const float *x, float *pre, float *y)
{
	int i = number(layer, part);

	pass->run->matmul(pass->device, &(struct op_matmul){
		.rows = pass->rows, .in = in * pass->gpt->width,
		.out = out * pass->gpt->width, .x = x,
		.weight = weight(pass, i), .bias = weight(pass, i + 1),
		.pre = pre, .y = y
	});
}

static void attend(const struct pass *pass, int layer)
{
	const struct gpt *gpt = pass->gpt;

	pass->run->attention(pass->device, &(struct op_attention){
		.sequences = pass->batch->sequences, .context = gpt->context,
		.heads = gpt->heads, .width = gpt->width,
		.qkv = kept(pass, layer, GPT_HEADS_IN),
		.out = kept(pass, layer, GPT_HEADS_OUT),
		.lse = kept(pass, layer, GPT_LSE),
		.work = scratch(pass, GPT_WORK)
	});
}

/* Leaves the final norm's output in GPT_NORMED. */
static void forward(const struct pass *pass)
{
	const struct gpt *gpt = pass->gpt;
	const float *x = NULL;
	float *normed = scratch(pass, GPT_NORMED);
	float *branch = scratch(pass, GPT_BRANCH);
	float *gelu = scratch(pass, GPT_GELU);

	pass->run->embed(pass->device, &(struct op_embed){
		.rows = pass->rows, .context = gpt->context,
		.width = gpt->width, .tokens = pass->batch->tokens,
		.token_table = weight(pass, GPT_TOKENS),
		.position_table = weight(pass, GPT_POSITIONS),
		.out = kept(pass, 0, GPT_SUM_1)
	});
	for (int layer = 0; layer < gpt->layers; layer++) {
		float *heads_in = kept(pass, layer, GPT_HEADS_IN);
		float *pre = kept(pass, layer, GPT_PRE);

		norm(pass, layer, GPT_NORM_1, x);
		linear(pass, layer, GPT_QKV, 1, 3, normed, NULL, heads_in);
		attend(pass, layer);
		linear(pass, layer, GPT_PROJECT, 1, 1,
		       kept(pass, layer, GPT_HEADS_OUT), NULL, branch);
		norm(pass, layer, GPT_NORM_2, kept(pass, layer, GPT_SUM_1));
		linear(pass, layer, GPT_FC, 1, 4, normed, pre, gelu);
		linear(pass, layer, GPT_SHRINK, 4, 1, gelu, NULL, branch);
		x = kept(pass, layer, GPT_SUM_2);
	}
	norm(pass, gpt->layers, GPT_NORM_1, x);
}

/* The gradients of tensors number i and above are final. */
static void progress(const struct pass *pass, int i)
{
	const struct backward *backward = pass->backward;

	if (backward->progress)
		backward->progress(backward->context, i > 0 ?
				   offset(pass, i - 1) :
				   pass->gpt->model.param_count);
}

/* Of the final norm's output, in GPT_BRANCH, where there is a backward. */
static void classify(const struct pass *pass, double scale, double *loss)
{
	const struct gpt *gpt = pass->gpt;
	bool back = pass->grad;

	pass->run->classifier(pass->device, &(struct op_classifier){
		.rows = pass->rows, .width = gpt->width, .vocab = gpt->vocab,
		.x = scratch(pass, GPT_NORMED),
		.weight = weight(pass, GPT_TOKENS),
		.targets = pass->batch->targets,
		.scale = (float)(scale / gpt->context), .loss = loss,
		.dx = back ? scratch(pass, GPT_BRANCH) : NULL,
		.dweight = back ? gradient(pass, GPT_TOKENS) : NULL,
		.accumulate = back && pass->backward->accumulate,
		.work = scratch(pass, GPT_WORK)
	});
}

/* From GPT_BRANCH; added to GPT_DX. */
static void norm_backward(const struct pass *pass, int layer,
			  enum gpt_part part)
{
	bool first = part == GPT_NORM_1;
	int i = number(layer, part);

	pass->run->norm_backward(pass->device, &(struct op_norm_backward){
		.rows = pass->rows, .width = pass->gpt->width,
		.sum = kept(pass, layer, first ? GPT_SUM_1 : GPT_SUM_2),
		.gain = weight(pass, i),
		.mean = kept(pass, layer, first ? GPT_MEAN_1 : GPT_MEAN_2),
		.rstd = kept(pass, layer, first ? GPT_RSTD_1 : GPT_RSTD_2),
		.dout = scratch(pass, GPT_BRANCH),
		.dsum = scratch(pass, GPT_DX),
		.dgain = gradient(pass, i), .dbias = gradient(pass, i + 1),
		.accumulate = pass->backward->accumulate
	});
	progress(pass, i);
}

static void linear_backward(const struct pass *pass, int layer,
			    enum gpt_part part, int in, int out,
			    const float *x, const float *pre, float *dy,
			    float *dx)
{
	int i = number(layer, part);

	pass->run->matmul_backward(pass->device, &(struct op_matmul_backward){
		.rows = pass->rows, .in = in * pass->gpt->width,
		.out = out * pass->gpt->width, .x = x,
		.weight = weight(pass, i), .pre = pre, .dy = dy, .dx = dx,
		.dweight = gradient(pass, i), .dbias = gradient(pass, i + 1),
		.accumulate = pass->backward->accumulate
	});
	progress(pass, i);
}

/* From GPT_BRANCH to GPT_WIDE. */
static void attend_backward(const struct pass *pass, int layer)
{
	const struct gpt *gpt = pass->gpt;

	pass->run->attention_backward(pass->device,
				      &(struct op_attention_backward){
		.sequences = pass->batch->sequences, .context = gpt->context,
		.heads = gpt->heads, .width = gpt->width,
		.qkv = kept(pass, layer, GPT_HEADS_IN),
		.out = kept(pass, layer, GPT_HEADS_OUT),
		.lse = kept(pass, layer, GPT_LSE),
		.dout = scratch(pass, GPT_BRANCH),
		.dqkv = scratch(pass, GPT_WIDE),
		.work = scratch(pass, GPT_WORK)
	});
	progress(pass, number(layer, GPT_PROJECT));
}

/*
 * What the norms and GELUs gave is made again: that takes 1 or 2 % of a step's
 * time and saves a quarter of a run's memory.
 */
static void layer_backward(const struct pass *pass, int layer)
{
	float *normed = scratch(pass, GPT_NORMED);
	float *branch = scratch(pass, GPT_BRANCH);
	float *dx = scratch(pass, GPT_DX);
	float *wide = scratch(pass, GPT_WIDE);
	float *gelu = scratch(pass, GPT_GELU);
	float *pre = kept(pass, layer, GPT_PRE);

	pass->run->gelu(pass->device, pre, gelu, (size_t)pass->rows * 4 *
			(size_t)pass->gpt->width);
	linear_backward(pass, layer, GPT_SHRINK, 4, 1, gelu, NULL, dx, wide);
	norm(pass, layer, GPT_NORM_2, NULL);
	linear_backward(pass, layer, GPT_FC, 1, 4, normed, pre, wide, branch);
	norm_backward(pass, layer, GPT_NORM_2);
	linear_backward(pass, layer, GPT_PROJECT, 1, 1,
			kept(pass, layer, GPT_HEADS_OUT), NULL, dx, branch);
	attend_backward(pass, layer);
	norm(pass, layer, GPT_NORM_1, NULL);
	linear_backward(pass, layer, GPT_QKV, 1, 3, normed, NULL, wide,
			branch);
	norm_backward(pass, layer, GPT_NORM_1);
}

void gpt_gradient(const struct model *model, struct device *device,
		  const float *param, const struct batch *batch,
		  const struct backward *backward, float *grad, double *loss)
{
	const struct gpt *gpt = (const struct gpt *)model;
	struct pass pass = begin(model, device, param, batch);
	float *dx = scratch(&pass, GPT_DX);

	pass.backward = backward;
	pass.grad = grad;
	forward(&pass);
	classify(&pass, backward->scale, loss);
	if (!grad)
		return;
	progress(&pass, model->tensor_count);
	/* Nothing flows past the final norm. */
	pass.run->fill(device, dx, 0, (size_t)pass.rows * (size_t)gpt->width);
	norm_backward(&pass, gpt->layers, GPT_NORM_1);
	for (int layer = gpt->layers - 1; layer >= 0; layer--)
		layer_backward(&pass, layer);
	pass.run->embed_backward(device, &(struct op_embed_backward){
		.rows = pass.rows, .context = gpt->context,
		.width = gpt->width, .tokens = batch->tokens, .dout = dx,
		.dtoken_table = gradient(&pass, GPT_TOKENS),
		.dposition_table = gradient(&pass, GPT_POSITIONS),
		.accumulate = backward->accumulate
	});
	progress(&pass, 0);
}

void gpt_logits(const struct model *model, struct device *device,
		const float *param, const struct batch *batch, float *logits)
{
	struct pass pass = begin(model, device, param, batch);

	forward(&pass);
	pass.run->matmul(device, &(struct op_matmul){
		.rows = pass.rows, .in = pass.gpt->width,
		.out = pass.gpt->vocab,
		.x = scratch(&pass, GPT_NORMED),
		.weight = weight(&pass, GPT_TOKENS), .y = logits
	});
}
