/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake cuBLASLt from inside: cublaslt_desc.c has what describes a
 * product, cublaslt.c refuses what NVIDIA's documentation does not list, and
 * cublaslt_run.c computes. Matrices are
 * by columns.
 */
#ifndef CUDA_ON_CPU_CUBLASLT_H
#define CUDA_ON_CPU_CUBLASLT_H

#include <cublasLt.h>
#include <stdbool.h>

struct lt_desc {
	cublasComputeType_t compute;
	cudaDataType_t scale, bias_type, aux_type;	/* -1: D's */
	int32_t transpose_a, transpose_b, pointer_mode;
	uint32_t epilogue;
	void *bias, *aux;
	int64_t aux_ld;
};

struct lt_layout {
	cudaDataType_t type;
	int32_t order, batch;
	uint64_t rows, cols;
	int64_t ld;
};

struct lt_preference {
	uint64_t workspace, implementations;
	uint32_t alignment[4], schemes, search;
	float waves;
};

struct lt_product {
	struct lt_desc desc;
	struct lt_layout layout_a, layout_b, layout_c, layout_d;
	const void *a, *b, *c;
	void *d, *workspace;
	size_t workspace_bytes;
	uint32_t scheme;		/* by which a sum is split */
	float alpha, beta;
	int (*touch)(const void *p, size_t n, int how, const char *who);
};

static inline size_t lt_size(cudaDataType_t type)
{
	return type == CUDA_R_32F ? 4 : 2;
}

static inline cudaDataType_t lt_bias_type(const struct lt_product *p)
{
	return (int)p->desc.bias_type < 0 ? p->layout_d.type :
		p->desc.bias_type;
}

/* m and k of the product, a being transposed or not */
static inline uint64_t lt_m(const struct lt_product *p)
{
	return p->desc.transpose_a == CUBLAS_OP_N ? p->layout_a.rows :
		p->layout_a.cols;
}

static inline uint64_t lt_k(const struct lt_product *p)
{
	return p->desc.transpose_a == CUBLAS_OP_N ? p->layout_a.cols :
		p->layout_a.rows;
}

/* As the work of a stream: frees the product, returns 1. */
int lt_run(void *product);

#endif
