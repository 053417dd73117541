/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA device: a module, ddp_cuda.so, that ddp-train loads where a rank has
 * a GPU, so that one package trains with and without. find.c chooses the GPU;
 * cuda.c has its queues and events, memory.c its memory, product.c the matrix
 * products by cuBLASLt, algorithm.c what is asked of that, linear.c the layer;
 * sizes.c counts the memory that operators work in; dnn*.c are attention by
 * cuDNN (dnn.h first). The .cu files are the other operators: the kernels of one
 * and their launches each. gpu.h is all that they need of CUDA; README.md says
 * what bounds each on a GPU.
 *
 * Here: what is behind a device, and the operators by file; contracts are in
 * device.h. Nothing in a step allocates or uses the default stream, and the
 * host waits for the GPU only where memory.c's ring is full: see state.h.
 */
#ifndef DDP_TRAIN_CUDA_H
#define DDP_TRAIN_CUDA_H

#include <cuda_runtime_api.h>

#include "cuda/sizes.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda;

/* The stream of a queue. */
cudaStream_t cuda_stream(const struct device *device, enum device_queue queue);

/* Note the first error of the work that a device is asked for. */
void cuda_check(struct device *device, cudaError_t error, const char *what);

/*
 * Note that a library has refused a call: for the shape that it was asked for,
 * unless the GPU has failed. The library has a runtime of its own, so this asks
 * the stream, not cudaPeekAtLastError().
 */
void cuda_check_library(struct device *device, const char *what);

/*
 * CUDA_SUMS floats for the partial sums of an operator without "work", used
 * within one call; NULL before open().
 */
float *cuda_sums(const struct device *device);

/* product.c: cuBLASLt's handle, workspace and plans */
struct linear;
struct linear *linear_create(struct device *device, struct ddp_error *error);
void linear_destroy(struct linear *linear);
struct linear *cuda_linear(const struct device *device);

/*
 * c = a b (+ c, where add) (+ bias in each row) (times gelu'(slope)), all by
 * rows: a [m][k], b [k][n], c [m][n]; a or b may be transposed in memory. With
 * pre, that goes there, and c is its GELU. With sums, those of a's rows go
 * there; a is transposed in memory then, and lda is m. c is of the device's
 * type or, where wide, of fp32; all else is of the device's. Sums are in fp32.
 *
 * bias and pre go together or alone, sums with add or alone, slope and wide
 * alone; ldc is n but where nothing else is asked for.
 */
struct product {
	bool transpose_a, transpose_b, add, wide;
	bool again;			/* op_matmul's, with pre */
	int m, n, k;
	const void *a, *b;
	const void *bias;		/* [n]; NULL: none */
	const void *slope;		/* [m][n]; NULL: none */
	void *pre;			/* [m][n]; NULL: none */
	void *sums;			/* [m]; NULL: none */
	void *c;
	int lda, ldb, ldc;		/* values from row to row in memory */
};
void linear_multiply(struct device *device, const struct product *product);

/* linear.c */
void cuda_matmul(struct device *device, const struct op_matmul *op);
void cuda_matmul_backward(struct device *device,
			  const struct op_matmul_backward *op);

/* activation.cu: GELU, and what surrounds a product */
void cuda_gelu(struct device *device, const void *pre, void *y, size_t count);
void cuda_gelu_backward(struct device *device, const void *pre, void *dy,
			size_t count);	/* dy *= gelu'(pre) */
/* y = the row, in each of its rows */
void cuda_repeat_row(struct device *device, int rows, int width,
		     const void *row, void *y);
/* Sums the rows of x to `to` (+ to, where add; fp32 alone). */
void cuda_sum_rows(struct device *device, int rows, int width, const void *x,
		   bool add, void *to);

/* attention.cu, attention_backward.cu; attention_plain.cu for what they lack */
void cuda_attention(struct device *device, const struct op_attention *op);
void cuda_attention_backward(struct device *device,
			     const struct op_attention_backward *op);

/* dnn.c; no_dnn.c where there is no cuDNN */
void cuda_dnn_attention(struct device *device, const struct op_attention *op);
void cuda_dnn_attention_backward(struct device *device,
				 const struct op_attention_backward *op);

/* classifier.cu */
void cuda_classifier(struct device *device, const struct op_classifier *op);

/* embed.cu */
void cuda_embed(struct device *device, const struct op_embed *op);
void cuda_embed_backward(struct device *device,
			 const struct op_embed_backward *op);

/* norm.cu, norm_backward.cu */
void cuda_norm(struct device *device, const struct op_norm *op);
void cuda_norm_backward(struct device *device,
			const struct op_norm_backward *op);

/* update.cu: value by value */
void cuda_adamw(struct device *device, const struct op_adamw *op);
void cuda_sgd(struct device *device, const struct op_sgd *op);
void cuda_round(struct device *device, const struct op_round *op);
void cuda_add(struct device *device, float *x, enum device_type type,
	      const void *y, size_t count);
void cuda_cast(struct device *device, enum device_type to_type, void *to,
	       enum device_type from_type, const void *from, size_t count);

/* sums.cu: in an order that is laid down */
void cuda_sum_squares(struct device *device, const struct op_sum_squares *op);
void cuda_step(struct device *device, const struct op_step *op);
void cuda_fold(struct device *device, enum device_queue queue, float *to,
	       const float *from, int parts, size_t stride, size_t count);

#ifdef __cplusplus
}
#endif
#endif
