/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix products, row-major. Those of fp32 are by oneDNN or a CBLAS. Those of
 * bf16 are by oneDNN where the processor has fast instructions for them; else,
 * and for fp16, the operands are widened to fp32. Sums are always in fp32.
 */
#ifndef DDP_TRAIN_MATMUL_H
#define DDP_TRAIN_MATMUL_H

#include <stdbool.h>

#include "device.h"

struct ddp_error;

/*
 * c[m][n] = alpha * op(a)[m][k] op(b)[k][n] + (add ? c : 0) + bias[n], rounded
 * once. a, b and bias are of the engine's type. c is of fp32, or with rounded
 * of that type; only of fp32 is it added to.
 */
struct matmul {
	bool transpose_a, transpose_b, add, rounded;
	int m, n, k;
	const void *a, *b;
	const void *bias;		/* NULL: none, as in fp32 always */
	void *c;
	int lda, ldb, ldc;		/* values from row to row */
	float alpha;			/* 1 but in fp32 */
};

/* How products of one type are formed; NULL with error set on failure. */
struct matmul_engine *matmul_create(enum device_type type, int threads,
				    struct ddp_error *error);
void matmul_destroy(struct matmul_engine *engine);

/* Bytes of an engine's copies in fp32 of parts of operands. */
size_t matmul_count_bytes(enum device_type type);

void matmul(struct matmul_engine *engine, const struct matmul *matmul);

/* Why operands are widened, as a sentence; NULL: they are not */
const char *matmul_explain(const struct matmul_engine *engine);

/* -1 with error set if a product failed since the engine was created. */
int matmul_check(const struct matmul_engine *engine, struct ddp_error *error);

/*
 * How many rows at once suit the engine: of products that sum over rows, and of
 * queries in attention (at most ATTENTION_ROWS).
 */
enum { ATTENTION_ROWS = 64 };
extern const int matmul_sum_rows, matmul_query_rows;

/* primitives.c: oneDNN's of bf16, for matmul.c */
struct primitives;

/*
 * Tells whether this processor has instructions for products of the type, and
 * whether they are faster than those of fp32.
 */
enum primitives_answer { PRIMITIVES_CANNOT, PRIMITIVES_SLOW, PRIMITIVES_FAST };
enum primitives_answer primitives_ask(enum device_type type);
struct primitives *primitives_create(void);	/* NULL: no memory */
void primitives_destroy(struct primitives *primitives);
void primitives_multiply(struct primitives *primitives,
			 const struct matmul *matmul);

/* 0, or the status of a product that failed */
int primitives_check(const struct primitives *primitives);

#endif
