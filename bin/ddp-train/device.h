/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that computes: a table of functions, so that a model is written only
 * once. Memory comes from one arena, planned by the model before open().
 *
 * Operators enqueue on the compute queue and return. Each queue works in
 * order; events order one against another. On the CPU, enqueuing runs the
 * work, and an event is complete at once. One thread calls a device.
 *
 * A run has one type, which open() chooses: `void *` below points to values of
 * it unless said otherwise. Tensors are row-major and dense; a pointer is into
 * the device's memory, at a multiple of 32 bytes where a tensor begins; inputs
 * and outputs do not overlap unless said otherwise. Where a backward operator
 * has "accumulate", its gradients of parameters are added to what is there, and
 * else written; only fp32 runs ask for that. Equal shapes and equal values give
 * equal bits, wherever a tensor lies.
 *
 * 16-bit values are rounded to nearest, ties to even; too large ones become
 * infinite, and NaN stays NaN. An operator sums in fp32 or better, and rounds
 * what it writes once. Only copies of parameters may be rounded otherwise.
 */
#ifndef DDP_TRAIN_DEVICE_H
#define DDP_TRAIN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp_error;

enum { DEVICE_ABI = 9, DEVICE_ALIGN = 64, DEVICE_EVENTS = 512,
       DEVICE_BLOCK = 4096, DEVICE_ROWS = 64 };

enum device_type { DEVICE_FP32, DEVICE_BF16, DEVICE_FP16 };

static inline size_t device_type_bytes(enum device_type type)
{
	return type == DEVICE_FP32 ? 4 : 2;
}

/* The rows of a token table in memory: up to a multiple of DEVICE_ROWS. */
static inline int device_pad_rows(int vocab)
{
	return (vocab + DEVICE_ROWS - 1) / DEVICE_ROWS * DEVICE_ROWS;
}

/* Returns the address of value i of x. */
static inline void *value_at(enum device_type type, const void *x, size_t i)
{
	return (char *)x + i * device_type_bytes(type);
}

enum device_space {
	SPACE_DEVICE,		/* operators work here */
	SPACE_HOST,		/* the program's own */
	SPACE_STAGING,		/* the host's, quick to copy from and to */
	SPACES
};

enum device_queue {
	QUEUE_COMPUTE,		/* operators */
	QUEUE_COMM,		/* what ranks exchange, beside them */
	QUEUE_AGREE,		/* what the host reads of a step, beside both */
	QUEUES
};

/* The kernels that compute attention. */
enum attention_kind { ATTENTION_OWN, ATTENTION_CUDNN };

/*
 * The shape that operators are to compute; numbers are at least 1. The size of
 * their workspace depends on it.
 */
struct device_shape {
	int rows;		/* sequences at once times context */
	int context, heads, width, vocab;
	enum device_type type;
	enum attention_kind attention;
};

/* out[i] = tokens' row of token_table + row i mod context of positions */
struct op_embed {
	int rows, context, width;
	const int32_t *tokens;		/* [rows] */
	const void *token_table;	/* [vocab][width] */
	const void *position_table;	/* [context][width] */
	void *out;			/* [rows][width] */
};

struct op_embed_backward {
	int rows, context, width;
	const int32_t *tokens;
	const int32_t *order;		/* [rows]: rows by token, and those of
					   one token upwards */
	const void *dout;
	void *dtoken_table;		/* added to, always */
	void *dposition_table;
	bool accumulate;		/* of dposition_table */
};

/* sum = x + residual; out = (sum - mean) * rstd * gain + bias, by row */
struct op_norm {
	int rows, width;
	float eps;
	const void *x;			/* [rows][width] */
	const void *residual;		/* [rows][width]; NULL: sum is x */
	const void *gain, *bias;	/* [width] */
	void *sum;			/* [rows][width]; unused without it */
	void *out;			/* [rows][width] */
	float *mean, *rstd;		/* [rows] */
};

struct op_norm_backward {
	int rows, width;
	const void *sum, *gain;		/* as forward left them */
	const float *mean, *rstd;
	const void *dout;
	void *dsum;			/* added to: on entry, the gradient
					   that bypasses the layer norm */
	void *dgain, *dbias;
	bool accumulate;
	void *work;
};

/*
 * y = x weight^T + bias; with pre, that goes there, and y = gelu(pre). Where
 * y's bits matter again, it is the GELU of the rounded pre; else it may be that
 * of the sum before.
 */
struct op_matmul {
	int rows, in, out;
	const void *x;			/* [rows][in] */
	const void *weight;		/* [out][in] */
	const void *bias;		/* [out]; NULL: none */
	void *pre;			/* [rows][out]; NULL: no GELU */
	void *y;			/* [rows][out] */
	bool again;			/* gelu() is to give y from pre */
};

struct op_matmul_backward {
	int rows, in, out;
	const void *x, *weight;
	const void *x_pre;		/* [rows][in]; NULL, or x is
					   gelu(x_pre): dx is then x_pre's
					   gradient, not x's */
	const void *dy;			/* [rows][out] */
	void *dx;			/* [rows][in], written; NULL: not */
	void *dweight;
	void *dbias;			/* NULL: no bias */
	bool accumulate;
};

/*
 * Causal self-attention of `heads` heads of width / heads each; a row of qkv
 * is q, k, v, each [heads][width / heads]; scores are scaled by
 * 1 / sqrt(width / heads).
 */
struct op_attention {
	int sequences, context, heads, width;
	const void *qkv;		/* [sequences * context][3 * width] */
	void *out;			/* [sequences * context][width] */
	float *lse;			/* [sequences][heads][context]: log of
					   the sum of exp of a row's scores */
	void *work;
};

struct op_attention_backward {
	int sequences, context, heads, width;
	const void *qkv, *out;
	const float *lse;
	const void *dout;
	void *dqkv;			/* written */
	void *work;
};

/*
 * loss = scale * sum over rows of -log softmax(x weight^T)[target]; forward
 * and backward in one, so that the logits of a block of rows give way to those
 * of the next: work has 256 rows of them on a CPU, and up to 512 MiB on a GPU.
 * The gradients are those of loss * loss_scale. A row whose part of the loss is
 * not finite has NaN for gradient: from the gradient's norm every rank sees it.
 *
 * Behind weight and dweight is room for device_pad_rows() rows. Those beyond
 * the vocabulary are 0 in weight, and may be written in dweight: so products of
 * a GPU have whole tiles of them.
 */
struct op_classifier {
	int rows, width, vocab;
	const void *x;			/* [rows][width] */
	const void *weight;		/* [vocab][width] */
	const int32_t *targets;		/* [rows] */
	float scale;
	const double *loss_scale;	/* [1]; NULL: 1 */
	double *loss;			/* [1], written */
	void *dx;			/* [rows][width]; NULL: only the loss */
	void *dweight;			/* [vocab][width]; NULL with dx */
	bool accumulate;
	void *work;
};

/*
 * The numbers that the update of a step depends on, in the device's memory. The
 * host reads them later, if at all. At first all is 0 but loss_scale.
 */
struct step_state {
	double norm;			/* of the gradient, once unscaled */
	double factor;			/* the optimizer's, of the gradient: to
					   clip it, and to unscale it */
	double loss_scale;		/* of the next gradient */
	double correction1, correction2;	/* 1 - beta^updates */
	uint64_t updates;		/* steps that were not skipped */
	uint64_t good;			/* of these, since loss_scale changed */
	uint64_t skip;			/* 1: the norm is not finite, and adamw
					   and sgd do nothing; else 0 */
};

/* The first loss_scale, and the steps until it doubles, if it is dynamic. */
enum { LOSS_SCALE_FIRST = 1 << 16, LOSS_SCALE_STEPS = 2000 };

/*
 * Sets *state from the sums of squares of the gradient's blocks, which are
 * added in the order of the blocks. As torch.nn.utils.clip_grad_norm_ does, the
 * factor is clip / (norm + 1e-6) where that is below 1. As torch.amp.GradScaler
 * does, a dynamic loss_scale doubles after LOSS_SCALE_STEPS steps without a
 * skip, and halves with one.
 */
struct op_step {
	size_t count;			/* of the blocks */
	const double *blocks;
	const uint32_t *order;		/* [count]: where in blocks the sum of
					   each block is; NULL: in order */
	double clip;			/* 0: off */
	double beta1, beta2;
	bool dynamic;
	struct step_state *state;
};

/*
 * How a copy of parameters is rounded to bf16, and to nothing else: to nearest,
 * or up or down by chance, as rounding.h says. The bits of chance are a
 * function of the seed, of state->updates and of the value's number in the
 * whole model.
 */
struct rounding {
	bool stochastic;
	uint64_t seed;
	uint64_t first;			/* number of the first value */
};

/*
 * Loshchilov and Hutter 2019, in the order of PyTorch's AdamW: with
 * g = grad * factor, param *= 1 - lr * decay; m += (1 - beta1) * (g - m);
 * v = beta2 * v + (1 - beta2) * g * g; param -= lr / correction1 * m /
 * (sqrt(v / correction2) + eps). The same bits for each value, whatever else
 * is updated with it; likewise sgd.
 */
struct op_adamw {
	size_t count;
	float *param;
	void *copy;			/* param, rounded; NULL: none */
	enum device_type grad_type;
	const void *grad;		/* of grad_type */
	float *m, *v;
	double lr, beta1, beta2, eps, decay;
	const struct step_state *state;
	struct rounding rounding;	/* of copy */
};

/* g = grad * factor + decay * param; v = momentum * v + g; param -= lr * v */
struct op_sgd {
	size_t count;
	float *param;
	void *copy;			/* as op_adamw's, and so on */
	enum device_type grad_type;
	const void *grad;
	float *v;			/* NULL: without momentum */
	double lr, momentum, decay;
	const struct step_state *state;
	struct rounding rounding;
};

/* copy = param, as the last update of both has written it */
struct op_round {
	size_t count;
	const float *param;
	void *copy;			/* of the device's type */
	const struct step_state *state;
	struct rounding rounding;
};

/* The fp64 sum of squares of each block of DEVICE_BLOCK values. */
struct op_sum_squares {
	size_t count;
	enum device_type type;
	const void *x;			/* of type */
	double *blocks;			/* [ceil(count / DEVICE_BLOCK)] */
};

struct device;

struct device_table {
	uint32_t abi;			/* DEVICE_ABI */
	const char *name;

	/*
	 * Checks that the operators can compute a model of this shape. Returns
	 * 0, or -1 with error naming the option to change.
	 */
	int (*check_shape)(const struct device_shape *shape,
			   struct ddp_error *error);

	/*
	 * Opens the device for values of this type. It gets bytes[SPACES] of
	 * memory in each space, beginning at arena[space] and zeroed. Libraries
	 * may use `threads`, at least 1. With tf32, which is set before, matrix
	 * products of fp32 may round what they multiply to TF32, where the
	 * device is quicker so: 10 bits of fraction. With shape.attention,
	 * which is set before with all of shape, and not for fp32, another
	 * library computes attention. First it has to do so in that shape as
	 * the device's own kernels do. Returns 0, or -1 with error set and
	 * nothing to free.
	 */
	int (*open)(struct device *device, enum device_type type,
		    const size_t *bytes, int threads, struct ddp_error *error);
	void (*close)(struct device *device);

	/*
	 * More memory of SPACE_DEVICE, at a multiple of DEVICE_ALIGN bytes and
	 * zeroed, until close(). NULL with error set if there is none.
	 */
	void *(*alloc)(struct device *device, size_t bytes,
		       struct ddp_error *error);

	/*
	 * Returns what a user should know of what computes here, such as how
	 * its products differ from the type; NULL: nothing.
	 */
	const char *(*note)(const struct device *device);

	/* Bytes of workspace that suffice for each operator with "work". */
	size_t (*work_bytes)(const struct device_shape *shape);

	/* Bytes that open() takes of its memory besides the arenas. */
	size_t (*own_bytes)(enum device_type type);

	/*
	 * Waits for all queues. -1, from then on always, with error (unless
	 * NULL) set if work in them failed.
	 */
	int (*check)(struct device *device, struct ddp_error *error);

	/* Events are numbered 0 .. DEVICE_EVENTS - 1. */
	void (*record)(struct device *device, int event,
		       enum device_queue queue);
	void (*wait)(struct device *device, int event, enum device_queue queue);

	/*
	 * Returns 1 once the event has come, else 0; -1 if work in the queues
	 * has failed.
	 */
	int (*query)(struct device *device, int event);

	/* Seconds between the last two records of events that have come. */
	double (*elapsed)(struct device *device, int from, int to);

	/*
	 * The queue as a library of collectives takes it: a cudaStream_t; NULL
	 * where the host computes.
	 */
	void *(*stream)(struct device *device, enum device_queue queue);

	/*
	 * Between any two spaces. A host source may be written again on
	 * return. A host destination is there after check(); one in
	 * SPACE_STAGING, once an event has come that was recorded in the same
	 * queue later.
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

	/* y = gelu(pre): the bits of a matmul with "again". */
	void (*gelu)(struct device *, const void *pre, void *y, size_t count);
	void (*attention)(struct device *, const struct op_attention *);
	void (*attention_backward)(struct device *,
				   const struct op_attention_backward *);
	void (*classifier)(struct device *, const struct op_classifier *);
	void (*sum_squares)(struct device *, const struct op_sum_squares *);
	void (*step)(struct device *, const struct op_step *);
	void (*adamw)(struct device *, const struct op_adamw *);
	void (*sgd)(struct device *, const struct op_sgd *);
	void (*round)(struct device *, const struct op_round *);

	/*
	 * Sums `parts` vectors of `count` values to `to`, in the order of
	 * sum_tree.h. The first one is at `from`, each other one `stride` values
	 * further on. NULL where the host computes.
	 */
	void (*fold)(struct device *, enum device_queue queue, float *to,
		     const float *from, int parts, size_t stride,
		     size_t count);

	/* x += y, which is of this type */
	void (*add)(struct device *, float *x, enum device_type type,
		    const void *y, size_t count);
	void (*zero)(struct device *, void *at, size_t bytes);

	/* Between any two types. */
	void (*cast)(struct device *, enum device_type to_type, void *to,
		     enum device_type from_type, const void *from,
		     size_t count);
};

struct device {
	const struct device_table *table;
	void *state;			/* the table's own */
	enum device_type type;		/* set by open() */
	char *arena[SPACES];
	/* Set before open() */
	bool tf32;
	struct device_shape shape;	/* all 0: unknown */
	bool share_gpu;			/* ranks beyond the last GPU begin again
					   with the first */
	int place;			/* which of its node's ranks this is,
					   from 1; 0: as variables say */
	size_t later;			/* bytes that the caller will alloc(),
					   for what is said where memory is
					   short */
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
