/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between gpt.c, which plans the parameters and the memory of a GPT, and
 * gpt_pass.c, which computes with them.
 *
 * Radford et al. 2019: x = token table + positions; each layer adds to x
 * attention(norm 1(x)) and MLP(norm 2(x)); logits = norm(x) token table^T.
 */
#ifndef DDP_TRAIN_GPT_H
#define DDP_TRAIN_GPT_H

#include "model.h"

/* The tensors of a layer, in the order of PyTorch; bias follows weight. */
enum gpt_part {
	GPT_NORM_1,
	GPT_QKV = 2,
	GPT_PROJECT = 4,
	GPT_NORM_2 = 6,
	GPT_FC = 8,
	GPT_SHRINK = 10,
	GPT_PARTS = 12
};

/*
 * The values of each layer that the forward pass keeps for the backward pass.
 * The final norm counts as the first norm of one more layer, which has nothing
 * else.
 */
enum gpt_kept {
	GPT_SUM_1,		/* [rows][width], what norm 1 takes in */
	GPT_MEAN_1,		/* [rows] */
	GPT_RSTD_1,
	GPT_NORMED_1,		/* [rows][width], what it gives: unless that is
				   computed again */
	GPT_SUM_2,
	GPT_MEAN_2,
	GPT_RSTD_2,
	GPT_NORMED_2,		/* likewise */
	GPT_HEADS_IN,		/* [rows][3 * width], q, k, v */
	GPT_HEADS_OUT,		/* [rows][width] */
	GPT_LSE,		/* [sequences][heads][context] */
	GPT_PRE,		/* [rows][4 * width], before the GELU */
	GPT_GELU,		/* likewise, and after it: unless that is
				   computed again */
	GPT_KEPT
};

/* The memory that the layers use one after the other. */
enum gpt_scratch {
	GPT_NORMED,		/* [rows][width], what a norm gives, where it
				   is not kept */
	GPT_BRANCH,		/* likewise, what is added to x; its gradient */
	GPT_DX,			/* likewise, the gradient of x */
	GPT_ACTIVE,		/* [rows][4 * width], as GPT_NORMED of a GELU */
	GPT_WIDE,		/* likewise, gradients inside */
	GPT_WORK,		/* the operators' own */
	GPT_SCRATCH
};

struct gpt {
	struct model model;		/* the first member */
	int layers, heads, width, context, vocab;
	bool recompute;			/* what norms and GELUs give */
	size_t kept[GPT_KEPT];		/* bytes from a layer's begin */
	size_t layer_size;		/* bytes from layer to layer */
	size_t scratch[GPT_SCRATCH];	/* bytes from the begin of all */
	struct tensor tensors[];
};

/* The token table, the position table, the layers' tensors, the last norm. */
enum { GPT_TOKENS, GPT_POSITIONS, GPT_LAYERS };

/* Number i in that order: in memory the order is reversed. */
static inline int gpt_find_tensor(const struct gpt *gpt, int i)
{
	return gpt->model.tensor_count - 1 - i;
}

/* These functions are in gpt_pass.c; their contracts are in model.h. */
void gpt_compute_gradient(const struct model *model, struct device *device,
			  const void *param, const struct batch *batch,
			  const struct backward *backward, void *grad,
			  double *loss);
void gpt_compute_logits(const struct model *model, struct device *device,
			const void *param, const struct batch *batch,
			void *logits);

#endif
