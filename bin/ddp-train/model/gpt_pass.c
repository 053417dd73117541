/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPT's forward and backward pass, by operators of any device. */
#include "model/gpt.h"

static const float epsilon = 1e-5f;

struct pass {
	const struct gpt *gpt;
	struct device *device;
	const struct device_table *run;
	const char *param;
	const struct batch *batch;
	int rows;
	const struct backward *backward;
	char *grad;			/* NULL: forward alone */
};

static struct pass begin_pass(const struct model *model, struct device *device,
			      const void *param, const struct batch *batch)
{
	const struct gpt *gpt = (const struct gpt *)model;

	return (struct pass){
		.gpt = gpt, .device = device, .run = device->table,
		.param = param, .batch = batch,
		.rows = batch->sequences * gpt->context
	};
}

/* The values before tensor number i of PyTorch's order. */
static size_t find_offset(const struct pass *pass, int i)
{
	return pass->gpt->tensors[gpt_find_tensor(pass->gpt, i)].offset;
}

static int number_tensor(int layer, enum gpt_part part)
{
	return GPT_LAYERS + layer * GPT_PARTS + (int)part;
}

static size_t find_byte(const struct pass *pass, int i)
{
	return find_offset(pass, i) * device_type_bytes(pass->device->type);
}

static const void *get_weight(const struct pass *pass, int i)
{
	return pass->param + find_byte(pass, i);
}

static void *get_grad(const struct pass *pass, int i)
{
	return pass->grad + find_byte(pass, i);
}

static char *get_memory(const struct pass *pass)
{
	return pass->gpt->model.memory[SPACE_DEVICE];
}

static void *get_kept(const struct pass *pass, int layer, enum gpt_kept which)
{
	return get_memory(pass) + (size_t)layer * pass->gpt->layer_size +
	       pass->gpt->kept[which];
}

static void *get_scratch(const struct pass *pass, enum gpt_scratch which)
{
	return get_memory(pass) + pass->gpt->scratch[which];
}

/* Returns where a norm's output is. */
static void *get_normed(const struct pass *pass, int layer, enum gpt_part part)
{
	if (pass->gpt->recompute)
		return get_scratch(pass, GPT_NORMED);
	return get_kept(pass, layer, part == GPT_NORM_1 ? GPT_NORMED_1 :
							  GPT_NORMED_2);
}

static void *get_active(const struct pass *pass, int layer)
{
	if (pass->gpt->recompute)
		return get_scratch(pass, GPT_ACTIVE);
	return get_kept(pass, layer, GPT_GELU);
}

/* Norm of x + branch, a sum that is kept; x NULL: it already was. */
static void normalize(const struct pass *pass, int layer, enum gpt_part part,
		      const void *x)
{
	bool first = part == GPT_NORM_1;
	void *sum = get_kept(pass, layer, first ? GPT_SUM_1 : GPT_SUM_2);

	pass->run->norm(pass->device, &(struct op_norm){
		.rows = pass->rows, .width = pass->gpt->width, .eps = epsilon,
		.x = x ? x : sum,
		.residual = x ? get_scratch(pass, GPT_BRANCH) : NULL,
		.gain = get_weight(pass, number_tensor(layer, part)),
		.bias = get_weight(pass, number_tensor(layer, part) + 1),
		.sum = sum, .out = get_normed(pass, layer, part),
		.mean = get_kept(pass, layer, first ? GPT_MEAN_1 : GPT_MEAN_2),
		.rstd = get_kept(pass, layer, first ? GPT_RSTD_1 : GPT_RSTD_2)
	});
}

/* The numbers `in` and `out` are in units of the width. */
static void multiply(const struct pass *pass, int layer, enum gpt_part part,
		     int in, int out, const void *x, void *pre, void *y)
{
	int i = number_tensor(layer, part);

	pass->run->matmul(pass->device, &(struct op_matmul){
		.rows = pass->rows, .in = in * pass->gpt->width,
		.out = out * pass->gpt->width, .x = x,
		.weight = get_weight(pass, i), .bias = get_weight(pass, i + 1),
		.pre = pre, .y = y, .again = pass->gpt->recompute
	});
}

static void attend_heads(const struct pass *pass, int layer)
{
	const struct gpt *gpt = pass->gpt;

	pass->run->attention(pass->device, &(struct op_attention){
		.sequences = pass->batch->sequences, .context = gpt->context,
		.heads = gpt->heads, .width = gpt->width,
		.qkv = get_kept(pass, layer, GPT_HEADS_IN),
		.out = get_kept(pass, layer, GPT_HEADS_OUT),
		.lse = get_kept(pass, layer, GPT_LSE),
		.work = get_scratch(pass, GPT_WORK)
	});
}

/* Runs forward to the final norm's output. */
static void run_forward(const struct pass *pass)
{
	const struct gpt *gpt = pass->gpt;
	const void *x = NULL;
	void *branch = get_scratch(pass, GPT_BRANCH);

	pass->run->embed(pass->device, &(struct op_embed){
		.rows = pass->rows, .context = gpt->context,
		.width = gpt->width, .tokens = pass->batch->tokens,
		.token_table = get_weight(pass, GPT_TOKENS),
		.position_table = get_weight(pass, GPT_POSITIONS),
		.out = get_kept(pass, 0, GPT_SUM_1)
	});
	for (int layer = 0; layer < gpt->layers; layer++) {
		void *heads_in = get_kept(pass, layer, GPT_HEADS_IN);
		void *gelu = get_active(pass, layer);

		normalize(pass, layer, GPT_NORM_1, x);
		multiply(pass, layer, GPT_QKV, 1, 3,
			 get_normed(pass, layer, GPT_NORM_1), NULL, heads_in);
		attend_heads(pass, layer);
		multiply(pass, layer, GPT_PROJECT, 1, 1,
			 get_kept(pass, layer, GPT_HEADS_OUT), NULL, branch);
		normalize(pass, layer, GPT_NORM_2,
			  get_kept(pass, layer, GPT_SUM_1));
		multiply(pass, layer, GPT_FC, 1, 4,
			 get_normed(pass, layer, GPT_NORM_2),
			 get_kept(pass, layer, GPT_PRE), gelu);
		multiply(pass, layer, GPT_SHRINK, 4, 1, gelu, NULL, branch);
		x = get_kept(pass, layer, GPT_SUM_2);
	}
	normalize(pass, gpt->layers, GPT_NORM_1, x);
}

/* The gradients of tensors number i and above are final. */
static void report_progress(const struct pass *pass, int i)
{
	const struct backward *backward = pass->backward;

	if (backward->progress)
		backward->progress(backward->context, i > 0 ?
				   find_offset(pass, i - 1) :
				   pass->gpt->model.param_count);
}

/*
 * Computes the loss, and in GPT_BRANCH the gradient of the final norm's output
 * if there is a backward pass.
 */
static void classify(const struct pass *pass, double scale, double *loss)
{
	const struct gpt *gpt = pass->gpt;
	bool back = pass->grad;

	pass->run->classifier(pass->device, &(struct op_classifier){
		.rows = pass->rows, .width = gpt->width, .vocab = gpt->vocab,
		.x = get_normed(pass, gpt->layers, GPT_NORM_1),
		.weight = get_weight(pass, GPT_TOKENS),
		.targets = pass->batch->targets,
		.scale = (float)(scale / gpt->context),
		.loss_scale = back ? pass->backward->loss_scale : NULL,
		.loss = loss,
		.dx = back ? get_scratch(pass, GPT_BRANCH) : NULL,
		.dweight = back ? get_grad(pass, GPT_TOKENS) : NULL,
		.accumulate = back && pass->backward->accumulate,
		.work = get_scratch(pass, GPT_WORK)
	});
}

/* Reads the output's gradient from GPT_BRANCH; adds the input's to GPT_DX. */
static void normalize_backward(const struct pass *pass, int layer,
			       enum gpt_part part)
{
	bool first = part == GPT_NORM_1;
	int i = number_tensor(layer, part);

	pass->run->norm_backward(pass->device, &(struct op_norm_backward){
		.rows = pass->rows, .width = pass->gpt->width,
		.sum = get_kept(pass, layer, first ? GPT_SUM_1 : GPT_SUM_2),
		.gain = get_weight(pass, i),
		.mean = get_kept(pass, layer, first ? GPT_MEAN_1 : GPT_MEAN_2),
		.rstd = get_kept(pass, layer, first ? GPT_RSTD_1 : GPT_RSTD_2),
		.dout = get_scratch(pass, GPT_BRANCH),
		.dsum = get_scratch(pass, GPT_DX),
		.dgain = get_grad(pass, i), .dbias = get_grad(pass, i + 1),
		.accumulate = pass->backward->accumulate,
		.work = get_scratch(pass, GPT_WORK)
	});
	report_progress(pass, i);
}

static void multiply_backward(const struct pass *pass, int layer,
			      enum gpt_part part, int in, int out,
			      const void *x, const void *x_pre, const void *dy,
			      void *dx)
{
	int i = number_tensor(layer, part);

	pass->run->matmul_backward(pass->device, &(struct op_matmul_backward){
		.rows = pass->rows, .in = in * pass->gpt->width,
		.out = out * pass->gpt->width, .x = x,
		.weight = get_weight(pass, i), .x_pre = x_pre, .dy = dy,
		.dx = dx,
		.dweight = get_grad(pass, i), .dbias = get_grad(pass, i + 1),
		.accumulate = pass->backward->accumulate
	});
	report_progress(pass, i);
}

/* Reads GPT_BRANCH and writes GPT_WIDE. */
static void attend_heads_backward(const struct pass *pass, int layer)
{
	const struct gpt *gpt = pass->gpt;

	pass->run->attention_backward(pass->device,
				      &(struct op_attention_backward){
		.sequences = pass->batch->sequences, .context = gpt->context,
		.heads = gpt->heads, .width = gpt->width,
		.qkv = get_kept(pass, layer, GPT_HEADS_IN),
		.out = get_kept(pass, layer, GPT_HEADS_OUT),
		.lse = get_kept(pass, layer, GPT_LSE),
		.dout = get_scratch(pass, GPT_BRANCH),
		.dqkv = get_scratch(pass, GPT_WIDE),
		.work = get_scratch(pass, GPT_WORK)
	});
	report_progress(pass, number_tensor(layer, GPT_PROJECT));
}

/*
 * Norms and GELUs are computed again if they were not kept. On a CPU that takes
 * 1 or 2 % of a step's time and saves a quarter of a run's memory.
 */
static void normalize_again(const struct pass *pass, int layer,
			    enum gpt_part part)
{
	if (pass->gpt->recompute)
		normalize(pass, layer, part, NULL);
}

static void activate_again(const struct pass *pass, int layer)
{
	if (pass->gpt->recompute)
		pass->run->gelu(pass->device, get_kept(pass, layer, GPT_PRE),
				get_active(pass, layer), (size_t)pass->rows *
				4 * (size_t)pass->gpt->width);
}

static void run_layer_backward(const struct pass *pass, int layer)
{
	void *branch = get_scratch(pass, GPT_BRANCH);
	void *dx = get_scratch(pass, GPT_DX);
	void *wide = get_scratch(pass, GPT_WIDE);

	activate_again(pass, layer);
	multiply_backward(pass, layer, GPT_SHRINK, 4, 1,
			  get_active(pass, layer),
			  get_kept(pass, layer, GPT_PRE), dx, wide);
	normalize_again(pass, layer, GPT_NORM_2);
	multiply_backward(pass, layer, GPT_FC, 1, 4,
			  get_normed(pass, layer, GPT_NORM_2), NULL, wide,
			  branch);
	normalize_backward(pass, layer, GPT_NORM_2);
	multiply_backward(pass, layer, GPT_PROJECT, 1, 1,
			  get_kept(pass, layer, GPT_HEADS_OUT), NULL, dx,
			  branch);
	attend_heads_backward(pass, layer);
	normalize_again(pass, layer, GPT_NORM_1);
	multiply_backward(pass, layer, GPT_QKV, 1, 3,
			  get_normed(pass, layer, GPT_NORM_1), NULL, wide,
			  branch);
	normalize_backward(pass, layer, GPT_NORM_1);
}

void gpt_compute_gradient(const struct model *model, struct device *device,
			  const void *param, const struct batch *batch,
			  const struct backward *backward, void *grad,
			  double *loss)
{
	const struct gpt *gpt = (const struct gpt *)model;
	struct pass pass = begin_pass(model, device, param, batch);
	void *dx = get_scratch(&pass, GPT_DX);

	pass.backward = backward;
	pass.grad = grad;
	run_forward(&pass);
	classify(&pass, backward->scale, loss);
	if (!grad)
		return;
	report_progress(&pass, model->tensor_count);
	/* No gradient bypasses the final norm. */
	pass.run->zero(device, dx, (size_t)pass.rows * (size_t)gpt->width *
		       device_type_bytes(device->type));
	normalize_backward(&pass, gpt->layers, GPT_NORM_1);
	for (int layer = gpt->layers - 1; layer >= 0; layer--)
		run_layer_backward(&pass, layer);
	pass.run->embed_backward(device, &(struct op_embed_backward){
		.rows = pass.rows, .context = gpt->context,
		.width = gpt->width, .tokens = batch->tokens,
		.order = batch->order, .dout = dx,
		.dtoken_table = get_grad(&pass, GPT_TOKENS),
		.dposition_table = get_grad(&pass, GPT_POSITIONS),
		.accumulate = backward->accumulate
	});
	report_progress(&pass, 0);
}

void gpt_compute_logits(const struct model *model, struct device *device,
			const void *param, const struct batch *batch,
			void *logits)
{
	struct pass pass = begin_pass(model, device, param, batch);

	run_forward(&pass);
	pass.run->matmul(device, &(struct op_matmul){
		.rows = pass.rows, .in = pass.gpt->width,
		.out = pass.gpt->vocab,
		.x = get_normed(&pass, pass.gpt->layers, GPT_NORM_1),
		.weight = get_weight(&pass, GPT_TOKENS), .y = logits
	});
}
