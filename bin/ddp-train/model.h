/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model: its parameters in one flat buffer, its gradients in another of the
 * same layout, and what computes them on a device.
 */
#ifndef DDP_TRAIN_MODEL_H
#define DDP_TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"

struct ddp_error;

/* The shape of a GPT. The preset decides a field that is 0. */
struct model_shape {
	uint64_t layers, heads, width, context, vocab;
};

/* A tensor of the flat buffer. */
struct tensor {
	char name[32];		/* as PyTorch would: "h.0.attn.c_attn.weight" */
	size_t offset, count;	/* values; offset is a multiple of 16 */
	int rows, columns;	/* rows 1: a vector */
	bool decay;		/* weight decay applies: not a vector */
};

/* Sequences that are computed at once, on the device. */
struct batch {
	int sequences;
	const int32_t *tokens;	/* [sequences][context]; NULL for toy */
	const int32_t *targets;	/* likewise */
	const int32_t *order;	/* likewise: see op_embed_backward; unused
				   without a gradient */
	const uint64_t *samples;	/* [sequences], host: their indices;
					   borrowed during the call */
};

/* How to compute the gradient. */
struct backward {
	double scale;		/* of the loss */
	const double *loss_scale;	/* device memory: times the gradient;
					   NULL: 1 */
	bool accumulate;	/* add to grad rather than write it: fp32 */

	/*
	 * Called after each operator of the backward pass: values 0 .. end - 1
	 * of the gradient are final once all work in the queue is done. end
	 * only grows, up to param_count. NULL: not called.
	 */
	void (*progress)(void *context, size_t end);
	void *context;
};

/* A model is a single piece of memory, for free(). */
struct model {
	const char *name;		/* "gpt", "toy" */
	struct model_shape shape;	/* complete; toy: all 0 */
	uint64_t seed;			/* of toy's samples */
	const struct tensor *tensors;	/* by offset: the order in which their
					   gradients become ready */
	int tensor_count;
	size_t param_count;		/* padding included */
	size_t spare;			/* values behind param[] and grad[], for
					   struct op_classifier: a multiple of
					   16. 0 in param, and of no account in
					   grad */
	size_t bytes[SPACES];		/* what it needs of the arena */
	char *memory[SPACES];		/* set by the caller: aligned */

	/* Fill param[param_count], host memory; padding is 0. */
	void (*init)(const struct model *model, uint64_t seed, float *param);

	/*
	 * loss = scale * sum over the batch's sequences of the mean loss of
	 * their tokens; grad = its gradient. loss is device memory. grad
	 * NULL: the loss alone, and of backward only scale is read; not toy.
	 * param and grad have values of the device's type.
	 */
	void (*gradient)(const struct model *model, struct device *device,
			 const void *param, const struct batch *batch,
			 const struct backward *backward, void *grad,
			 double *loss);

	/*
	 * logits[sequences * context][vocab], device memory, of its type;
	 * targets are not read. NULL for toy.
	 */
	void (*logits)(const struct model *model, struct device *device,
		       const void *param, const struct batch *batch,
		       void *logits);
};

/*
 * A GPT of this shape (complete, by gpt_complete_shape) for batches of at
 * most `sequences` on a device of this type, whose shape it sets but for
 * `attention`; or the toy. With recompute, what norms and GELUs give is
 * computed again in the backward pass rather than kept, with the same bits.
 * Those of a GPU's GELU may be others without: then it may round what goes into
 * the GELU only where that is kept. NULL with error set if memory is short, or
 * the device cannot compute the shape.
 */
struct model *gpt_create(const struct model_shape *shape, int sequences,
			 struct device *device, enum device_type type,
			 bool recompute, struct ddp_error *error);
struct model *toy_create(uint64_t seed, struct ddp_error *error);

/* Up to a multiple of 16 values, where a tensor may begin. */
static inline uint64_t model_pad(uint64_t count)
{
	return (count + 15) / 16 * 16;
}

/*
 * Set offset and count of each tensor from rows and columns, one after the
 * other; returns the values that they take, padding included.
 */
static inline size_t model_lay_out(struct tensor *tensors, int count)
{
	uint64_t end = 0;

	for (int i = 0; i < count; i++) {
		struct tensor *tensor = &tensors[i];

		tensor->offset = (size_t)end;
		tensor->count = (size_t)tensor->rows * (size_t)tensor->columns;
		end += model_pad(tensor->count);
	}
	return (size_t)end;
}

/*
 * Complete shape, of fields up to 65536, from the preset ("tiny", "10M",
 * "124M", "774M") and check what its fields are together: that heads divide
 * the width, that nothing overflows. Returns 0, or -1 with error naming the
 * option to change.
 */
int gpt_complete_shape(struct model_shape *shape, const char *preset,
		       struct ddp_error *error);

#endif
