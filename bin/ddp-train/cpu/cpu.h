/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators of the CPU, by file; contracts are in device.h. */
#ifndef DDP_TRAIN_CPU_H
#define DDP_TRAIN_CPU_H

#include "device.h"
#include "kernel.h"

struct ddp_error;

/* Parts of the sum over a row, for vectors of any length. */
enum { LANES = 16 };

/*
 * matmul.c: the engine, oneDNN or a CBLAS; row-major.
 * c[m][n] = alpha * op(a)[m][k] op(b)[k][n] + (add ? c : 0)
 */
struct matmul {
	bool transpose_a, transpose_b, add;
	int m, n, k;
	const float *a, *b;
	float *c;
	int lda, ldb, ldc;		/* floats from row to row */
	float alpha;
};

void matmul_set_threads(int threads);
void matmul(const struct matmul *matmul);

/*
 * How many rows at once suit the engine: of products that sum over rows, and of
 * queries in attention (at most ATTENTION_ROWS).
 */
enum { ATTENTION_ROWS = 64 };
extern const int matmul_sum_rows, matmul_query_rows;

/* -1 with error set if a product failed since the program began. */
int matmul_check(struct ddp_error *error);

/* linear.c */
void cpu_matmul(struct device *device, const struct op_matmul *op);
void cpu_matmul_backward(struct device *device,
			 const struct op_matmul_backward *op);
void cpu_gelu(struct device *device, const float *pre, float *y, size_t count);

/* attention.c */
size_t cpu_count_attention_work(const struct device_shape *shape);
void cpu_attention(struct device *device, const struct op_attention *op);
void cpu_attention_backward(struct device *device,
			    const struct op_attention_backward *op);

/* classifier.c */
size_t cpu_count_classifier_work(const struct device_shape *shape);
void cpu_classifier(struct device *device, const struct op_classifier *op);

/* norm.c */
void cpu_embed(struct device *device, const struct op_embed *op);
void cpu_embed_backward(struct device *device,
			const struct op_embed_backward *op);
void cpu_norm(struct device *device, const struct op_norm *op);
void cpu_norm_backward(struct device *device,
		       const struct op_norm_backward *op);

#endif
