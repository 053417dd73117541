/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix products by cuBLASLt.
 *
 * cuBLASLt's matrices are by columns, ours by rows, and one by rows is the
 * transposed one by columns. So c = a b is asked for as c^T = b^T a^T: its A is
 * our b, its B our a, its m our n. A bias for each of its rows is then one for
 * each of our columns, which is what a layer has.
 *
 * A shape's algorithm is chosen when it is first met, and kept: a product has
 * the same bits in each step. Sums that are split over k may be added up in the
 * workspace in fp32, in a fixed order, but not in the output and not by
 * atomics.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cublasLt.h>
#pragma GCC diagnostic pop
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "layout/error.h"

enum {
	WORKSPACE = 32 << 20,	/* what cuBLASLt's fastest ask for on Hopper */
	CHAINS = 64, ALIGN = 16
};

/* What a plan depends on; no padding, so that memcmp() compares. */
struct key {
	int m, n, k, lda, ldb, ldc;
	int transpose_a, transpose_b, wide, bias;
	int align_a, align_b, align_c;
};

/* bias: whether the epilogue adds it. */
struct plan {
	struct key key;
	bool bias;
	cublasLtMatmulDesc_t product;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algorithm;
	struct plan *next;
};

struct linear {
	cublasLtHandle_t handle;
	void *workspace;
	struct plan *chains[CHAINS];
	char what[64];			/* met an error */
};

size_t linear_count_bytes(void)
{
	return WORKSPACE;
}

struct linear *linear_create(struct device *device, struct ddp_error *error)
{
	struct linear *linear = calloc(1, sizeof(*linear));
	cublasStatus_t status;

	if (!linear) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory of the host "
			      "is left: choose a smaller model");
		return NULL;
	}
	status = cublasLtCreate(&linear->handle);
	if (status != CUBLAS_STATUS_SUCCESS) {
		ddp_error_set(error, DDP_ERROR_CUDA, "cuBLASLt does not start: "
			      "its status is %d; is libcublasLt.so.%d that of "
			      "this driver's CUDA?", (int)status,
			      CUBLAS_VER_MAJOR);
		free(linear);
		return NULL;
	}
	linear->workspace = device->table->alloc(device, WORKSPACE, error);
	if (linear->workspace)
		return linear;
	linear_destroy(linear);
	return NULL;
}

static void destroy_plan(struct plan *plan)
{
	if (plan->product)
		cublasLtMatmulDescDestroy(plan->product);
	if (plan->a)
		cublasLtMatrixLayoutDestroy(plan->a);
	if (plan->b)
		cublasLtMatrixLayoutDestroy(plan->b);
	if (plan->c)
		cublasLtMatrixLayoutDestroy(plan->c);
	free(plan);
}

void linear_destroy(struct linear *linear)
{
	if (!linear)
		return;
	for (int i = 0; i < CHAINS; i++) {
		while (linear->chains[i]) {
			struct plan *plan = linear->chains[i];

			linear->chains[i] = plan->next;
			destroy_plan(plan);
		}
	}
	cublasLtDestroy(linear->handle);
	free(linear);
}

/* An error of cuBLASLt; where CUDA has one of its own, that says more. */
static void note_status(struct device *device, cublasStatus_t status)
{
	struct linear *linear = cuda_linear(device);
	cudaError_t error;

	if (status == CUBLAS_STATUS_SUCCESS)
		return;
	error = cudaPeekAtLastError();
	if (!linear->what[0])
		snprintf(linear->what, sizeof(linear->what),
			 "a matrix product (cuBLASLt's status %d)",
			 (int)status);
	cuda_check(device, error == cudaSuccess ? cudaErrorUnknown : error,
		   linear->what);
}

static cudaDataType_t find_type(enum device_type type)
{
	static const cudaDataType_t types[] = {
		[DEVICE_FP32] = CUDA_R_32F, [DEVICE_BF16] = CUDA_R_16BF,
		[DEVICE_FP16] = CUDA_R_16F
	};

	return types[type];
}

static cublasStatus_t describe_matrices(enum device_type type,
					struct plan *plan)
{
	const struct key *key = &plan->key;
	int m = key->m, n = key->n, k = key->k;
	bool ta = key->transpose_a, tb = key->transpose_b;
	cublasStatus_t status;

	status = cublasLtMatrixLayoutCreate(&plan->a, find_type(type),
					    tb ? k : n, tb ? n : k, key->ldb);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatrixLayoutCreate(
			&plan->b, find_type(type), ta ? m : k, ta ? k : m,
			key->lda);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatrixLayoutCreate(
			&plan->c, find_type(key->wide ? DEVICE_FP32 : type),
			n, m, key->ldc);
	return status;
}

static cublasStatus_t set_product(struct plan *plan, int attribute,
				  const void *value, size_t bytes)
{
	return cublasLtMatmulDescSetAttribute(
		plan->product, (cublasLtMatmulDescAttributes_t)attribute,
		value, bytes);
}

/* Of what the epilogue adds only the alignment matters, until it is run. */
static cublasStatus_t set_bias(enum device_type type, struct plan *plan,
			       const void *example)
{
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	int32_t bias_type = find_type(type);
	cublasStatus_t status;

	status = set_product(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
			     sizeof(epilogue));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan,
				     CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
				     &bias_type, sizeof(bias_type));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
				     &example, sizeof(example));
	return status;
}

static cublasStatus_t describe_product(struct plan *plan)
{
	int32_t a = plan->key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	int32_t b = plan->key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasStatus_t status;

	status = cublasLtMatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F,
					  CUDA_R_32F);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_TRANSA, &a,
				     sizeof(a));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_TRANSB, &b,
				     sizeof(b));
	return status;
}

static cublasStatus_t prefer(cublasLtMatmulPreference_t preference,
			     const struct key *key)
{
	const uint64_t workspace = WORKSPACE;
	const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE |
				 CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	const uint32_t a = key->align_b, b = key->align_a, c = key->align_c;
	const struct {
		int attribute;
		const void *value;
		size_t bytes;
	} all[] = {
		{ CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, 8 },
		{ CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, 4 }
	};
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all) &&
	     status == CUBLAS_STATUS_SUCCESS; i++)
		status = cublasLtMatmulPreferenceSetAttribute(
			preference,
			(cublasLtMatmulPreferenceAttributes_t)all[i].attribute,
			all[i].value, all[i].bytes);
	return status;
}

/* The heuristic's first choice. */
static cublasStatus_t choose_algorithm(struct linear *linear,
				       struct plan *plan)
{
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasStatus_t status;
	int count = 0;

	status = cublasLtMatmulPreferenceCreate(&preference);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	status = prefer(preference, &plan->key);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulAlgoGetHeuristic(
			linear->handle, plan->product, plan->a, plan->b,
			plan->c, plan->c, preference, 1, &result, &count);
	cublasLtMatmulPreferenceDestroy(preference);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (count == 0 || result.state != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	plan->algorithm = result.algo;
	return CUBLAS_STATUS_SUCCESS;
}

/* With the bias in the epilogue, or where that is not offered without. */
static cublasStatus_t fill_plan(struct linear *linear, enum device_type type,
				struct plan *plan)
{
	cublasLtEpilogue_t none = CUBLASLT_EPILOGUE_DEFAULT;
	const char *example = (char *)linear->workspace + ALIGN;
	cublasStatus_t status = describe_product(plan);

	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrices(type, plan);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (plan->key.bias &&
	    set_bias(type, plan, example) == CUBLAS_STATUS_SUCCESS &&
	    choose_algorithm(linear, plan) == CUBLAS_STATUS_SUCCESS) {
		plan->bias = true;
		return CUBLAS_STATUS_SUCCESS;
	}
	status = set_product(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &none,
			     sizeof(none));
	return status == CUBLAS_STATUS_SUCCESS ?
	       choose_algorithm(linear, plan) : status;
}

static struct plan *find_plan(struct device *device, const struct key *key)
{
	struct linear *linear = cuda_linear(device);
	unsigned hash = (unsigned)key->m * 31 + (unsigned)key->n * 7 +
			(unsigned)key->k;
	struct plan **chain = &linear->chains[hash % CHAINS], *plan = *chain;
	cublasStatus_t status;

	while (plan && memcmp(&plan->key, key, sizeof(*key)) != 0)
		plan = plan->next;
	if (plan)
		return plan;
	plan = calloc(1, sizeof(*plan));
	if (!plan) {
		cuda_check(device, cudaErrorMemoryAllocation,
			   "a matrix product");
		return NULL;
	}
	plan->key = *key;
	status = fill_plan(linear, device->type, plan);
	if (status == CUBLAS_STATUS_SUCCESS) {
		plan->next = *chain;
		return *chain = plan;
	}
	note_status(device, status);
	destroy_plan(plan);
	return NULL;
}

/*
 * Of a matrix, up to ALIGN: the same wherever its tensor lies, since that
 * begins at a multiple of more.
 */
static int find_alignment(const void *at)
{
	return (int)(((uintptr_t)at | ALIGN) & -((uintptr_t)at | ALIGN));
}

/*
 * Where the epilogue adds no bias, c begins with it and the product is added,
 * which rounds once too.
 */
void linear_multiply(struct device *device, const struct product *product)
{
	const void *bias = product->bias;
	const struct key key = {
		product->m, product->n, product->k, product->lda,
		product->ldb, product->ldc, product->transpose_a,
		product->transpose_b, product->wide, bias != NULL,
		find_alignment(product->a), find_alignment(product->b),
		find_alignment(product->c)
	};
	struct linear *linear = cuda_linear(device);
	struct plan *plan = find_plan(device, &key);
	bool add = product->add || (plan && bias && !plan->bias);
	const float one = 1, beta = add ? 1 : 0;

	if (!plan)
		return;
	if (plan->bias)
		note_status(device, set_product(
			plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
			sizeof(bias)));
	else if (bias)
		cuda_repeat_row(device, product->m, product->n, bias,
				product->c);
	note_status(device, cublasLtMatmul(
		linear->handle, plan->product, &one, product->b, plan->a,
		product->a, plan->b, &beta, product->c, plan->c, product->c,
		plan->c, &plan->algorithm, linear->workspace, WORKSPACE,
		cuda_stream(device, QUEUE_COMPUTE)));
}
