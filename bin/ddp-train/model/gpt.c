/* SPDX-License-Identifier: BSD-3-Clause */
/* The shapes, parameters and memory of a GPT. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpt.h"
#include "data/rng.h"
#include "util/error.h"

static const struct {
	const char *name;
	struct model_shape shape;
} presets[] = {
	{ "tiny", { 2, 2, 64, 64, 256 } },
	{ "10M", { 6, 6, 384, 256, 256 } },
	{ "124M", { 12, 12, 768, 1024, 256 } },
	{ "774M", { 36, 20, 1280, 1024, 256 } }
};

/* Rows and columns in widths; no rows: a vector. */
static const struct {
	const char *name;
	int rows, columns;
} parts[GPT_PARTS] = {
	[GPT_NORM_1] = { "ln_1.weight", 0, 1 },
	[GPT_NORM_1 + 1] = { "ln_1.bias", 0, 1 },
	[GPT_QKV] = { "attn.c_attn.weight", 3, 1 },
	[GPT_QKV + 1] = { "attn.c_attn.bias", 0, 3 },
	[GPT_PROJECT] = { "attn.c_proj.weight", 1, 1 },
	[GPT_PROJECT + 1] = { "attn.c_proj.bias", 0, 1 },
	[GPT_NORM_2] = { "ln_2.weight", 0, 1 },
	[GPT_NORM_2 + 1] = { "ln_2.bias", 0, 1 },
	[GPT_FC] = { "mlp.c_fc.weight", 4, 1 },
	[GPT_FC + 1] = { "mlp.c_fc.bias", 0, 4 },
	[GPT_SHRINK] = { "mlp.c_proj.weight", 1, 4 },
	[GPT_SHRINK + 1] = { "mlp.c_proj.bias", 0, 1 }
};

static int check_heads(const struct model_shape *shape,
		       struct ddp_error *error)
{
	if (shape->width % shape->heads)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--heads %"
				     PRIu64 " does not divide --width %" PRIu64
				     "; choose a --width that is a multiple "
				     "of --heads", shape->heads, shape->width);
	return 0;
}

/*
 * Each tensor must have a number of values that fits an int. That of the token
 * table does for any width that passes the first line.
 */
static int check_tensors(const struct model_shape *shape,
			 struct ddp_error *error)
{
	uint64_t width = shape->width;
	const struct {
		uint64_t count;
		const char *options, *smaller;
	} tensors[] = {
		{ 4 * width * width, "--width", "--width" },
		{ shape->context * 4 * width, "--context times --width",
		  "--context" },
		{ shape->context * shape->vocab, "--context times --vocab",
		  "--context" }
	};

	for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++)
		if (tensors[i].count > INT_MAX)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s "
					     "makes a tensor of %" PRIu64
					     " numbers, more than %d; choose "
					     "a smaller %s",
					     tensors[i].options,
					     tensors[i].count, INT_MAX,
					     tensors[i].smaller);
	return 0;
}

static uint64_t choose_given(uint64_t given, uint64_t preset)
{
	return given ? given : preset;
}

int gpt_complete_shape(struct model_shape *shape, const char *preset,
		       struct ddp_error *error)
{
	const size_t count = sizeof(presets) / sizeof(*presets);
	struct model_shape full;
	size_t i = 0;

	while (i < count && strcmp(preset, presets[i].name) != 0)
		i++;
	if (i == count)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--preset "
				     "'%s' is not known; choose tiny, 10M, "
				     "124M or 774M", preset);
	full = presets[i].shape;
	full.layers = choose_given(shape->layers, full.layers);
	full.heads = choose_given(shape->heads, full.heads);
	full.width = choose_given(shape->width, full.width);
	full.context = choose_given(shape->context, full.context);
	full.vocab = choose_given(shape->vocab, full.vocab);
	if (check_heads(&full, error) < 0 || check_tensors(&full, error) < 0)
		return -1;
	*shape = full;
	return 0;
}

static void set_tensor(struct tensor *tensor, int rows, int columns)
{
	tensor->rows = rows ? rows : 1;
	tensor->columns = columns;
	tensor->decay = rows;
}

/* Number i from the front of PyTorch's order, which begins with the tables. */
static void describe_tensor(struct gpt *gpt, int i)
{
	struct tensor *tensor = &gpt->tensors[gpt_find_tensor(gpt, i)];
	size_t size = sizeof(tensor->name);
	int layer = (i - GPT_LAYERS) / GPT_PARTS;
	int part = (i - GPT_LAYERS) % GPT_PARTS;

	if (i < GPT_LAYERS) {
		bool tokens = i == GPT_TOKENS;

		strcpy(tensor->name, tokens ? "wte.weight" : "wpe.weight");
		set_tensor(tensor, tokens ? gpt->vocab : gpt->context,
			   gpt->width);
		return;
	}
	if (layer < gpt->layers)
		snprintf(tensor->name, size, "h.%d.%s", layer,
			 parts[part].name);
	else
		snprintf(tensor->name, size, "ln_f.%s",
			 part == GPT_NORM_1 ? "weight" : "bias");
	set_tensor(tensor, parts[part].rows * gpt->width,
		   parts[part].columns * gpt->width);
}

/*
 * Draws as GPT-2 does: normal with deviation 0.02, less where a layer adds to
 * x, so that x does not grow with the number of layers; gains 1, biases 0.
 */
static void init_tensor(const struct gpt *gpt, int i, uint64_t seed,
			uint64_t first, float *values)
{
	const struct tensor *tensor = &gpt->tensors[gpt_find_tensor(gpt, i)];
	int part = i < GPT_LAYERS ? -1 : (i - GPT_LAYERS) % GPT_PARTS;
	bool residual = part == GPT_PROJECT || part == GPT_SHRINK;
	float deviation = 0.02f;

	if (residual)
		deviation /= sqrtf(2 * (float)gpt->layers);
	for (size_t j = 0; j < tensor->count; j++)
		if (tensor->decay)
			values[j] = deviation * rng_draw_normal(
				seed, RNG_PARAMETER, first + j);
		else
			values[j] = part % 2 == 0;
}

/* A random number's index is its place in PyTorch's order, without padding. */
static void gpt_init(const struct model *model, uint64_t seed, float *param)
{
	const struct gpt *gpt = (const struct gpt *)model;
	uint64_t first = 0;

	memset(param, 0, model->param_count * sizeof(*param));
	for (int i = 0; i < model->tensor_count; i++) {
		const struct tensor *tensor =
			&gpt->tensors[gpt_find_tensor(gpt, i)];

		init_tensor(gpt, i, seed, first, param + tensor->offset);
		first += tensor->count;
	}
}

/* Set offsets of buffers of so many bytes from begin on; returns the end. */
static uint64_t place_buffers(size_t *offsets, const uint64_t *sizes, int count,
			      uint64_t begin)
{
	for (int i = 0; i < count; i++) {
		offsets[i] = (size_t)begin;
		begin += (sizes[i] + DEVICE_ALIGN - 1) / DEVICE_ALIGN *
			 DEVICE_ALIGN;
	}
	return begin;
}

/* Returns bytes of device memory. */
static uint64_t plan_memory(struct gpt *gpt, uint64_t sequences,
			    enum device_type type, uint64_t work)
{
	uint64_t rows = sequences * (uint64_t)gpt->context;
	uint64_t row = rows * sizeof(float);	/* one of each */
	uint64_t x = rows * (uint64_t)gpt->width * device_type_bytes(type);
	uint64_t again = gpt->recompute ? x : 0, once = x - again;
	const uint64_t kept[GPT_KEPT] = {
		[GPT_SUM_1] = x, [GPT_MEAN_1] = row, [GPT_RSTD_1] = row,
		[GPT_NORMED_1] = once,
		[GPT_SUM_2] = x, [GPT_MEAN_2] = row, [GPT_RSTD_2] = row,
		[GPT_NORMED_2] = once,
		[GPT_HEADS_IN] = 3 * x, [GPT_HEADS_OUT] = x,
		[GPT_LSE] = row * (uint64_t)gpt->heads,
		[GPT_PRE] = 4 * x, [GPT_GELU] = 4 * once
	};
	const uint64_t scratch[GPT_SCRATCH] = {
		[GPT_NORMED] = again, [GPT_BRANCH] = x, [GPT_DX] = x,
		[GPT_ACTIVE] = 4 * again, [GPT_WIDE] = 4 * x, [GPT_WORK] = work
	};
	uint64_t layer = place_buffers(gpt->kept, kept, GPT_KEPT, 0);

	gpt->layer_size = (size_t)layer;
	return place_buffers(gpt->scratch, scratch, GPT_SCRATCH,
			     (uint64_t)gpt->layers * layer +
			     gpt->kept[GPT_SUM_2]);
}

static int check_batch(const struct model_shape *shape, int sequences,
		       struct ddp_error *error)
{
	uint64_t numbers = (uint64_t)sequences * shape->context * 4 *
			   shape->width;

	if (sequences > 0 && numbers <= INT_MAX)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%d sequences of "
			     "--context %" PRIu64 " at once make a tensor of "
			     "%" PRIu64 " numbers, more than %d; choose a "
			     "smaller --batch or --granule", sequences,
			     shape->context, numbers, INT_MAX);
}

/* Tensors and memory, once the shape is known. Returns 0 or -1. */
static int complete_model(struct gpt *gpt, int sequences,
			  struct device *device, enum device_type type,
			  struct ddp_error *error)
{
	struct model *model = &gpt->model;

	device->shape = (struct device_shape){
		.type = type, .rows = sequences * gpt->context,
		.context = gpt->context, .heads = gpt->heads,
		.width = gpt->width, .vocab = gpt->vocab,
		.attention = device->shape.attention
	};
	if (device->table->check_shape(&device->shape, error) < 0)
		return -1;
	for (int i = 0; i < model->tensor_count; i++)
		describe_tensor(gpt, i);
	model->tensors = gpt->tensors;
	model->param_count = model_lay_out(gpt->tensors, model->tensor_count);
	/* The token table is the last tensor in memory. */
	model->spare = (size_t)model_pad(
		(uint64_t)(device_pad_rows(gpt->vocab) - gpt->vocab) *
		(uint64_t)gpt->width);
	/* No overflow: at most 65536 layers of about 11 tensors, each of
	   which check_batch() has limited. */
	model->bytes[SPACE_DEVICE] = (size_t)plan_memory(
		gpt, (uint64_t)sequences, type,
		device->table->work_bytes(&device->shape));
	return 0;
}

struct model *gpt_create(const struct model_shape *shape, int sequences,
			 struct device *device, enum device_type type,
			 bool recompute, struct ddp_error *error)
{
	int tensors = GPT_LAYERS + (int)shape->layers * GPT_PARTS + 2;
	struct gpt *gpt;

	if (check_batch(shape, sequences, error) < 0)
		return NULL;
	gpt = calloc(1, sizeof(*gpt) + (size_t)tensors * sizeof(struct tensor));
	if (!gpt) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			      "list of %d tensors", tensors);
		return NULL;
	}
	gpt->model = (struct model){
		.name = "gpt", .shape = *shape,
		.tensor_count = tensors, .init = gpt_init,
		.gradient = gpt_compute_gradient, .logits = gpt_compute_logits
	};
	gpt->recompute = recompute;
	gpt->layers = (int)shape->layers;
	gpt->heads = (int)shape->heads;
	gpt->width = (int)shape->width;
	gpt->context = (int)shape->context;
	gpt->vocab = (int)shape->vocab;
	if (complete_model(gpt, sequences, device, type, error) == 0)
		return &gpt->model;
	free(gpt);
	return NULL;
}
