/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix products by cuBLASLt. A shape's algorithm is chosen when it is first
 * met, and kept: a product has the same bits in each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/algorithm.h"
#include "cuda/cuda.h"
#include "util/error.h"

enum { CHAINS = 64 };

struct linear {
	struct setting setting;
	void *workspace;
	struct plan *chains[CHAINS];
	char what[64];			/* met an error */
};

struct linear *linear_create(struct device *device, struct ddp_error *error)
{
	struct linear *linear = calloc(1, sizeof(*linear));
	cublasStatus_t status;
	int gpu = 0, major = 0;

	if (!linear) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory of the host "
			      "is left: choose a smaller model");
		return NULL;
	}
	status = cublasLtCreate(&linear->setting.handle);
	if (status != CUBLAS_STATUS_SUCCESS) {
		ddp_error_set(error, DDP_ERROR_CUDA, "cuBLASLt does not start: "
			      "its status is %d; is libcublasLt.so.%d that of "
			      "this driver's CUDA?", (int)status,
			      CUBLAS_VER_MAJOR);
		free(linear);
		return NULL;
	}
	cuda_check(device, cudaGetDevice(&gpu), "asking for the GPU");
	cuda_check(device, cudaDeviceGetAttribute(
		   &major, cudaDevAttrComputeCapabilityMajor, gpu),
		   "asking for the GPU");
	linear->setting.hopper = major >= 9;
	linear->setting.type = device->type;
	linear->setting.tf32 = device->tf32;
	linear->workspace = device->table->alloc(device, WORKSPACE, error);
	linear->setting.workspace = linear->workspace;
	if (linear->workspace)
		return linear;
	linear_destroy(linear);
	return NULL;
}

void linear_destroy(struct linear *linear)
{
	if (!linear)
		return;
	for (int i = 0; i < CHAINS; i++) {
		while (linear->chains[i]) {
			struct plan *plan = linear->chains[i];

			linear->chains[i] = plan->next;
			algorithm_destroy(plan);
		}
	}
	cublasLtDestroy(linear->setting.handle);
	free(linear);
}

static void note_status(struct device *device, cublasStatus_t status)
{
	struct linear *linear = cuda_linear(device);

	if (status == CUBLAS_STATUS_SUCCESS)
		return;
	if (!linear->what[0])
		snprintf(linear->what, sizeof(linear->what),
			 "a matrix product (cuBLASLt's status %d)",
			 (int)status);
	cuda_check_library(device, linear->what);
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
	status = algorithm_choose(&linear->setting, plan);
	if (status == CUBLAS_STATUS_SUCCESS) {
		plan->next = *chain;
		return *chain = plan;
	}
	note_status(device, status);
	algorithm_destroy(plan);
	return NULL;
}

/*
 * Returns the alignment of a matrix, up to ALIGN. It is the same wherever its
 * tensor lies, since that begins at a multiple of more.
 */
static int find_alignment(const void *at)
{
	return (int)(((uintptr_t)at | ALIGN) & -((uintptr_t)at | ALIGN));
}

static int find_epilogue(const struct product *product)
{
	if (product->pre)
		return product->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS :
				       CUBLASLT_EPILOGUE_GELU_AUX;
	return product->bias ? CUBLASLT_EPILOGUE_BIAS :
	       product->slope ? CUBLASLT_EPILOGUE_DGELU :
				CUBLASLT_EPILOGUE_DEFAULT;
}

static void run_plan(struct device *device, const struct product *product,
		     const struct plan *plan, bool add, cudaStream_t stream)
{
	struct linear *linear = cuda_linear(device);
	const float one = 1, beta = add ? 1 : 0;

	note_status(device, cublasLtMatmul(
		linear->setting.handle, plan->product, &one, product->b, plan->a,
		product->a, plan->b, &beta, product->c, plan->c, product->c,
		plan->c, &plan->algorithm, linear->workspace, WORKSPACE,
		stream));
}

/*
 * Runs a plan whose epilogue adds no bias. So c begins with the bias and the
 * product is added, which rounds once too.
 */
static void run_unfused(struct device *device, const struct product *product,
			const struct plan *plan, cudaStream_t stream)
{
	if (product->bias)
		cuda_repeat_row(device, product->m, product->n, product->bias,
				product->c);
	run_plan(device, product, plan, product->add || product->bias, stream);
	if (product->slope)
		cuda_gelu_backward(device, product->slope, product->c,
				   (size_t)product->m * (size_t)product->n);
	if (product->sums)
		cuda_sum_rows(device, product->k, product->m, product->a,
			      product->add, product->sums);
}

static struct plan *plan_product(struct device *device,
				 const struct product *product)
{
	const struct key key = {
		product->m, product->n, product->k, product->lda,
		product->ldb, product->ldc, product->transpose_a,
		product->transpose_b, product->wide, find_epilogue(product),
		find_alignment(product->a), find_alignment(product->b),
		find_alignment(product->c)
	};

	return find_plan(device, &key);
}

/* The GELU of the rounded pre, which cuda_gelu() gives again. */
static void multiply_first(struct device *device, const struct product *product)
{
	struct product first = *product;

	first.c = product->pre;
	first.pre = NULL;
	linear_multiply(device, &first);
	cuda_gelu(device, product->pre, product->c,
		  (size_t)product->m * (size_t)product->n);
}

void linear_multiply(struct device *device, const struct product *product)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	struct plan *plan;

	if (product->pre && product->again) {
		multiply_first(device, product);
		return;
	}
	plan = plan_product(device, product);
	if (!plan)
		return;
	if (plan->fused) {
		note_status(device, algorithm_set_pointers(
			plan, product->bias,
			product->pre ? product->pre : product->slope));
		run_plan(device, product, plan, product->add, stream);
	} else if (product->pre) {
		multiply_first(device, product);
	} else {
		run_unfused(device, product, plan, stream);
	}
}
