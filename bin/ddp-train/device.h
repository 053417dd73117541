/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that computes: a table of functions, so that a model is written only
 * once. Memory comes from one arena, planned by the model before open().
 *
 * Operators enqueue on the compute queue and return. Both queues work in
 * order; events order one against the other. On the CPU, enqueuing runs the
 * work, and an event is complete at once. One thread calls a device.
 *
 * Tensors are row-major and dense, of fp32 unless said otherwise; a pointer is
 * into the device's memory, at a multiple of DEVICE_ALIGN bytes where a tensor
 * begins; inputs and outputs do not overlap unless said otherwise. Where a
 * backward operator has "accumulate", its gradients of parameters are added to
 * what is there, and else written. Equal shapes and equal values give equal
 * bits, wherever a tensor lies.
 */
#ifndef DDP_TRAIN_DEVICE_H
#define DDP_TRAIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp_error;

enum { DEVICE_ABI = 1, DEVICE_ALIGN = 64, DEVICE_EVENTS = 64,
       DEVICE_BLOCK = 65536 };

enum device_space {
	SPACE_DEVICE,		/* operators work here */
	SPACE_HOST,		/* the program's own */
	SPACE_STAGING,		/* the host's, quick to copy from and to */
	SPACES
};

enum device_queue { QUEUE_COMPUTE, QUEUE_COMM };

/* What the size of the operators' workspace depends on; at least 1 each. */
struct device_shape {
	int rows;		/* sequences at once times context */
	int context, heads, width, vocab;
};

/* out[i] = tokens' row of token_table + row i mod context of positions */
struct op_embed {
	int rows, context, width;
	const int32_t *tokens;		/* [rows] */
	const float *token_table;	/* [vocab][width] */
	const float *position_table;	/* [context][width] */
	float *out;			/* [rows][width] */
};

struct op_embed_backward {
	int rows, context, width;
	const int32_t *tokens;
	const float *dout;
	float *dtoken_table;		/* added to, always */
	float *dposition_table;
	bool accumulate;		/* of dposition_table */
};

/* sum = x + residual; out = (sum - mean) * rstd * gain + bias, by row */
struct op_norm {
	int rows, width;
	float eps;
	const float *x;			/* [rows][width] */
	const float *residual;		/* [rows][width]; NULL: sum is x */
	const float *gain, *bias;	/* [width] */
	float *sum;			/* [rows][width]; unused without it */
	float *out;			/* [rows][width] */
	float *mean, *rstd;		/* [rows] */
};

struct op_norm_backward {
	int rows, width;
	const float *sum, *gain, *mean, *rstd;	/* as forward left them */
	const float *dout;
	float *dsum;			/* added to: on entry, the gradient
					   that bypasses the layer norm */
	float *dgain, *dbias;
	bool accumulate;
};

/* y = x weight^T + bias; with pre, that goes there, and y = gelu(pre) */
struct op_matmul {
	int rows, in, out;
	const float *x;			/* [rows][in] */
	const float *weight;		/* [out][in] */
	const float *bias;		/* [out]; NULL: none */
	float *pre;			/* [rows][out]; NULL: no GELU */
	float *y;			/* [rows][out] */
};

struct op_matmul_backward {
	int rows, in, out;
	const float *x, *weight, *pre;	/* pre NULL: no GELU */
	float *dy;			/* with pre it becomes pre's gradient */
	float *dx;			/* [rows][in], written; NULL: not */
	float *dweight;
	float *dbias;			/* NULL: no bias */
	bool accumulate;
};

/*
 * Causal self-attention of `heads` heads of width / heads each; a row of qkv
 * is q, k, v, each [heads][width / heads]; scores are scaled by
 * 1 / sqrt(width / heads).
 */
struct op_attention {
	int sequences, context, heads, width;
	const float *qkv;		/* [sequences * context][3 * width] */
	float *out;			/* [sequences * context][width] */
	float *lse;			/* [sequences][heads][context]: log of
					   the sum of exp of a row's scores */
	void *work;
};

struct op_attention_backward {
	int sequences, context, heads, width;
	const float *qkv, *out, *lse;
	const float *dout;
	float *dqkv;			/* written */
	void *work;
};

/*
 * loss = scale * sum over rows of -log softmax(x weight^T)[target]; forward
 * and backward in one, so that memory never holds all logits at once.
 */
struct op_classifier {
	int rows, width, vocab;
	const float *x;			/* [rows][width] */
	const float *weight;		/* [vocab][width] */
	const int32_t *targets;		/* [rows] */
	float scale;
	double *loss;			/* [1], written */
	float *dx;			/* [rows][width]; NULL: only the loss */
	float *dweight;			/* [vocab][width]; NULL with dx */
	bool accumulate;
	void *work;
};

/*
 * Loshchilov and Hutter 2019, in the order of PyTorch's AdamW: with
 * g = grad * scale, param *= 1 - lr * decay; m += (1 - beta1) * (g - m);
 * v = beta2 * v + (1 - beta2) * g * g; param -= lr / correction1 * m /
 * (sqrt(v / correction2) + eps); correction_i = 1 - beta_i^step.
 */
struct op_adamw {
	size_t count;
	float *param;
	const float *grad;
	float *m, *v;
	double lr, beta1, beta2, eps, decay, scale;
	double correction1, correction2;
};

/* g = grad * scale + decay * param; v = momentum * v + g; param -= lr * v */
struct op_sgd {
	size_t count;
	float *param;
	const float *grad;
	float *v;			/* NULL: without momentum */
	double lr, momentum, decay, scale;
};

/* The fp64 sum of squares of each block of DEVICE_BLOCK values. */
struct op_sum_squares {
	size_t count;
	const float *x;
	double *blocks;			/* [ceil(count / DEVICE_BLOCK)] */
};

enum device_cast { FLOAT_TO_BFLOAT, BFLOAT_TO_FLOAT };

struct device;

struct device_table {
	uint32_t abi;			/* DEVICE_ABI */
	const char *name;

	/*
	 * bytes[SPACES] of memory in each space, beginning at arena[space] and
	 * zeroed; threads, at least 1, for libraries that use several.
	 * Returns 0, or -1 with error set and nothing to free.
	 */
	int (*open)(struct device *device, const size_t *bytes, int threads,
		    struct ddp_error *error);
	void (*close)(struct device *device);

	/* Bytes of workspace that suffice for each operator with "work". */
	size_t (*work_bytes)(const struct device_shape *shape);

	/*
	 * Waits for both queues.  -1, from then on always, with error (unless
	 * NULL) set if work in them failed.
	 */
	int (*check)(struct device *device, struct ddp_error *error);

	/* Events are numbered 0 .. DEVICE_EVENTS - 1. */
	void (*record)(struct device *device, int event,
		       enum device_queue queue);
	void (*wait)(struct device *device, int event, enum device_queue queue);
	bool (*query)(struct device *device, int event);

	/*
	 * Between any two spaces. A host source may be written again on
	 * return; a host destination is there after check().
	 */
	void (*copy)(struct device *device, enum device_queue queue, void *to,
		     const void *from, size_t bytes);

	void (*embed)(struct device *, const struct op_embed *);
	void (*embed_backward)(struct device *,
			       const struct op_embed_backward *);
	void (*norm)(struct device *, const struct op_norm *);
	void (*norm_backward)(struct device *,
			      const struct op_norm_backward *);
	void (*matmul)(struct device *, const struct op_matmul *);
	void (*matmul_backward)(struct device *,
				const struct op_matmul_backward *);

	/* y = gelu(pre) again, the bits that matmul gave for this pre. */
	void (*gelu)(struct device *, const float *pre, float *y,
		     size_t count);
	void (*attention)(struct device *, const struct op_attention *);
	void (*attention_backward)(struct device *,
				   const struct op_attention_backward *);
	void (*classifier)(struct device *, const struct op_classifier *);
	void (*adamw)(struct device *, const struct op_adamw *);
	void (*sgd)(struct device *, const struct op_sgd *);
	void (*sum_squares)(struct device *, const struct op_sum_squares *);

	/* x *= factor; x += y; x = value */
	void (*scale)(struct device *, float *x, double factor, size_t count);
	void (*add)(struct device *, float *x, const float *y, size_t count);
	void (*fill)(struct device *, float *x, float value, size_t count);

	/* bfloat16 rounds to nearest even; NaN stays NaN. */
	void (*cast)(struct device *, enum device_cast cast, void *to,
		     const void *from, size_t count);
};

struct device {
	const struct device_table *table;
	void *state;			/* the table's own */
	char *arena[SPACES];
};

/* Copy bytes to host memory, now; the next check() reports a failure. */
static inline void device_fetch(struct device *device, void *to,
				const void *from, size_t bytes)
{
	device->table->copy(device, QUEUE_COMPUTE, to, from, bytes);
	device->table->check(device, NULL);
}

extern const struct device_table device_cpu;

#endif
