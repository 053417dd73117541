/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes a product to cuBLASLt, and takes the algorithm that it chooses. */
#ifndef DDP_TRAIN_CUDA_ALGORITHM_H
#define DDP_TRAIN_CUDA_ALGORITHM_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cublasLt.h>
#pragma GCC diagnostic pop

#include "cuda/sizes.h"
#include "device.h"

enum { ALIGN = 16 };	/* of pointers: the most that is told */

/* The values that a plan depends on; no padding, so that memcmp() compares. */
struct key {
	int m, n, k, lda, ldb, ldc;
	int transpose_a, transpose_b, wide;
	int epilogue;			/* cuBLASLt's: DEFAULT, BIAS, DGELU,
					   GELU_AUX, GELU_AUX_BIAS */
	int align_a, align_b, align_c;
};

struct plan {
	struct key key;
	bool fused;			/* its kernel does that too */
	cublasLtMatmulDesc_t product;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algorithm;
	struct plan *next;
};

/* The setting that a plan is made for. */
struct setting {
	cublasLtHandle_t handle;
	const void *workspace;
	enum device_type type;
	bool hopper;			/* or later */
	bool tf32;			/* products of fp32 by TF32 */
};

/* Fill a plan that has its key, and else zeros; it may be left in part. */
cublasStatus_t algorithm_choose(const struct setting *setting,
				struct plan *plan);

/*
 * Sets where the epilogue of a fused plan reads or writes from now on: a bias,
 * and as a matrix a slope or pre. The pointers that its epilogue lacks are not
 * looked at.
 */
cublasStatus_t algorithm_set_pointers(struct plan *plan, const void *bias,
				      const void *matrix);

/* Accepts one that was left in part. */
void algorithm_destroy(struct plan *plan);

#endif
