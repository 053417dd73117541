/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A product as cuBLASLt takes it, and its algorithm.
 *
 * cuBLASLt's matrices are by columns, ours by rows, and one by rows is the
 * transposed one by columns. So c = a b is asked for as c^T = b^T a^T: its A is
 * our b, its B our a, its m our n. A bias for each of its rows is then one for
 * each of our columns, which is what a layer has.
 *
 * Sums that are split over k may be added up in the workspace in fp32, in a
 * fixed order, but not in the output and not by atomics. With an epilogue they
 * are not split: it has been seen to add a bias to the rounded sum then, and
 * what it does with the rest is not said.
 */
#include <stdlib.h>

#include "cuda/algorithm.h"

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

/* GELU_AUX and DGELU share what says that there is one. */
static bool has_matrix(const struct key *key)
{
	return key->epilogue & CUBLASLT_EPILOGUE_GELU_AUX &
	       CUBLASLT_EPILOGUE_DGELU;
}

cublasStatus_t algorithm_set_pointers(struct plan *plan, const void *bias,
				      const void *matrix)
{
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	if (plan->key.epilogue & CUBLASLT_EPILOGUE_BIAS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
				     &bias, sizeof(bias));
	if (has_matrix(&plan->key) && status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan,
				     CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
				     &matrix, sizeof(matrix));
	return status;
}

/* The pointer to the example counts by its alignment alone. */
static cublasStatus_t set_epilogue(enum device_type type, struct plan *plan,
				   const void *example)
{
	uint32_t epilogue = (uint32_t)plan->key.epilogue;
	int32_t value_type = find_type(type);
	int64_t ld = plan->key.n;
	cublasStatus_t status;

	status = set_product(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
			     sizeof(epilogue));
	if (status == CUBLAS_STATUS_SUCCESS &&
	    plan->key.epilogue & CUBLASLT_EPILOGUE_BIAS)
		status = set_product(plan,
				     CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
				     &value_type, sizeof(value_type));
	if (status == CUBLAS_STATUS_SUCCESS && has_matrix(&plan->key))
		status = set_product(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
				     &ld, sizeof(ld));
	return status == CUBLAS_STATUS_SUCCESS ?
	       algorithm_set_pointers(plan, example, example) : status;
}

static cublasStatus_t describe_product(const struct setting *setting,
				       struct plan *plan)
{
	bool tf32 = setting->tf32 && setting->type == DEVICE_FP32;
	int32_t a = plan->key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	int32_t b = plan->key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasStatus_t status;

	status = cublasLtMatmulDescCreate(&plan->product, tf32 ?
					  CUBLAS_COMPUTE_32F_FAST_TF32 :
					  CUBLAS_COMPUTE_32F, CUDA_R_32F);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_TRANSA, &a,
				     sizeof(a));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = set_product(plan, CUBLASLT_MATMUL_DESC_TRANSB, &b,
				     sizeof(b));
	return status;
}

static cublasStatus_t prefer(cublasLtMatmulPreference_t preference,
			     const struct key *key, bool split)
{
	const uint64_t workspace = WORKSPACE;
	const uint32_t schemes = split ?
				 CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE :
				 CUBLASLT_REDUCTION_SCHEME_NONE;
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

/* Asks for the heuristic's first choice; with split, a sum may be split. */
static cublasStatus_t ask_heuristic(cublasLtHandle_t handle, struct plan *plan,
				    bool split)
{
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasStatus_t status;
	int count = 0;

	status = cublasLtMatmulPreferenceCreate(&preference);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	status = prefer(preference, &plan->key, split);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmulAlgoGetHeuristic(
			handle, plan->product, plan->a, plan->b,
			plan->c, plan->c, preference, 1, &result, &count);
	cublasLtMatmulPreferenceDestroy(preference);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	if (count == 0 || result.state != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	plan->algorithm = result.algo;
	return CUBLAS_STATUS_SUCCESS;
}

/*
 * Returns true if the epilogue is to be asked for. GELU and its slope in the
 * epilogue pay on Hopper and later, as llm.c has it too; in fp32 they would not
 * have our precision. The sums of a bias' gradient (BGRADB) are not asked for.
 * In bf16 cuBLASLt 13.1 has no kernel of Hopper's for them, but one of Ampere's
 * and a pass of its own.
 */
static bool wants_epilogue(const struct setting *setting,
			   const struct key *key)
{
	if (key->epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
	    key->epilogue == CUBLASLT_EPILOGUE_BIAS)
		return key->epilogue == CUBLASLT_EPILOGUE_BIAS;
	return setting->hopper && setting->type != DEVICE_FP32 &&
	       key->n % 8 == 0;
}

static bool try_epilogue(const struct setting *setting, struct plan *plan)
{
	const char *example = (const char *)setting->workspace + ALIGN;

	return set_epilogue(setting->type, plan, example) ==
	       CUBLAS_STATUS_SUCCESS &&
	       ask_heuristic(setting->handle, plan, false) ==
	       CUBLAS_STATUS_SUCCESS;
}

/*
 * cuBLASLt refuses the pointer of an epilogue that is no longer set ("is NOT
 * allowed for ..." among its texts), and cublasLt.h does not say how to unset it.
 */
static cublasStatus_t forget_epilogue(const struct setting *setting,
				      struct plan *plan)
{
	cublasLtMatmulDescDestroy(plan->product);
	plan->product = NULL;
	return describe_product(setting, plan);
}

/* Chooses with the epilogue, or without where that is not offered. */
cublasStatus_t algorithm_choose(const struct setting *setting,
				struct plan *plan)
{
	cublasStatus_t status = describe_product(setting, plan);
	cublasLtMatmulAlgo_t plain;

	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrices(setting->type, plan);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = ask_heuristic(setting->handle, plan, true);
	if (status != CUBLAS_STATUS_SUCCESS ||
	    !wants_epilogue(setting, &plan->key))
		return status;
	plain = plan->algorithm;
	plan->fused = try_epilogue(setting, plan);
	if (plan->fused)
		return CUBLAS_STATUS_SUCCESS;
	plan->algorithm = plain;
	return forget_epilogue(setting, plan);
}

void algorithm_destroy(struct plan *plan)
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
