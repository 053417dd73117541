/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuBLASLt's descriptors of products, matrices and preferences: their
 * attributes, of which the fake knows those that a trainer may need.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt.h"

_Static_assert(sizeof(struct lt_desc) <= sizeof(cublasLtMatmulDescOpaque_t) &&
	       sizeof(struct lt_layout) <=
	       sizeof(cublasLtMatrixLayoutOpaque_t) &&
	       sizeof(struct lt_preference) <=
	       sizeof(cublasLtMatmulPreferenceOpaque_t),
	       "what is opaque has room");

struct attribute {
	int name;
	size_t offset, size;
};

#define DESC(name, member) { CUBLASLT_MATMUL_DESC_##name, \
	offsetof(struct lt_desc, member), \
	sizeof(((struct lt_desc *)0)->member) }
static const struct attribute of_desc[] = {
	DESC(COMPUTE_TYPE, compute), DESC(SCALE_TYPE, scale),
	DESC(POINTER_MODE, pointer_mode), DESC(TRANSA, transpose_a),
	DESC(TRANSB, transpose_b), DESC(EPILOGUE, epilogue),
	DESC(BIAS_POINTER, bias), DESC(BIAS_DATA_TYPE, bias_type),
	DESC(EPILOGUE_AUX_POINTER, aux), DESC(EPILOGUE_AUX_LD, aux_ld),
	DESC(EPILOGUE_AUX_DATA_TYPE, aux_type), { -1, 0, 0 }
};

#define LAYOUT(name, member) { CUBLASLT_MATRIX_LAYOUT_##name, \
	offsetof(struct lt_layout, member), \
	sizeof(((struct lt_layout *)0)->member) }
static const struct attribute of_layout[] = {
	LAYOUT(TYPE, type), LAYOUT(ORDER, order), LAYOUT(ROWS, rows),
	LAYOUT(COLS, cols), LAYOUT(LD, ld), LAYOUT(BATCH_COUNT, batch),
	{ -1, 0, 0 }
};

#define PREF(name, member) { CUBLASLT_MATMUL_PREF_##name, \
	offsetof(struct lt_preference, member), \
	sizeof(((struct lt_preference *)0)->member) }
static const struct attribute of_preference[] = {
	PREF(SEARCH_MODE, search), PREF(MAX_WORKSPACE_BYTES, workspace),
	PREF(REDUCTION_SCHEME_MASK, schemes),
	PREF(MIN_ALIGNMENT_A_BYTES, alignment[0]),
	PREF(MIN_ALIGNMENT_B_BYTES, alignment[1]),
	PREF(MIN_ALIGNMENT_C_BYTES, alignment[2]),
	PREF(MIN_ALIGNMENT_D_BYTES, alignment[3]),
	PREF(MAX_WAVES_COUNT, waves), PREF(IMPL_MASK, implementations),
	{ -1, 0, 0 }
};

static const struct attribute *find(const struct attribute *list, int name)
{
	while (list->name >= 0 && list->name != name)
		list++;
	return list->name >= 0 ? list : NULL;
}

static cublasStatus_t set(void *object, const struct attribute *list, int name,
			  const void *value, size_t size)
{
	const struct attribute *a = find(list, name);

	if (!a)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!value || size != a->size)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy((char *)object + a->offset, value, size);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const void *object, const struct attribute *list,
			  int name, void *value, size_t size, size_t *written)
{
	const struct attribute *a = find(list, name);

	if (!a)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (written)
		*written = a->size;
	if (!value || size < a->size)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(value, (const char *)object + a->offset, a->size);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors */

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc,
		size_t size, cublasComputeType_t compute, cudaDataType_t scale)
{
	struct lt_desc made = {
		.compute = compute, .scale = scale,
		.bias_type = (cudaDataType_t)-1,
		.aux_type = (cudaDataType_t)-1,
		.epilogue = CUBLASLT_EPILOGUE_DEFAULT,
	};

	if (size < sizeof(made))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(desc, &made, sizeof(made));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
		cublasComputeType_t compute, cudaDataType_t scale)
{
	*desc = calloc(1, sizeof(**desc));
	return cublasLtMatmulDescInit_internal(*desc, sizeof(**desc), compute,
					       scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
	free(desc);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
		cublasLtMatmulDescAttributes_t name, const void *value,
		size_t size)
{
	return set(desc, of_desc, name, value, size);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
		cublasLtMatmulDescAttributes_t name, void *value, size_t size,
		size_t *written)
{
	return get(desc, of_desc, name, value, size, written);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout,
		size_t size, cudaDataType type, uint64_t rows, uint64_t cols,
		int64_t ld)
{
	struct lt_layout made = { .type = type,
		.order = CUBLASLT_ORDER_COL, .batch = 1, .rows = rows,
		.cols = cols, .ld = ld };

	if (size < sizeof(made))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(layout, &made, sizeof(made));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
		cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	*layout = calloc(1, sizeof(**layout));
	return cublasLtMatrixLayoutInit_internal(*layout, sizeof(**layout),
						 type, rows, cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	free(layout);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
		cublasLtMatrixLayoutAttribute_t name, const void *value,
		size_t size)
{
	return set(layout, of_layout, name, value, size);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
		cublasLtMatrixLayoutAttribute_t name, void *value, size_t size,
		size_t *written)
{
	return get(layout, of_layout, name, value, size, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(
		cublasLtMatmulPreference_t preference, size_t size)
{
	struct lt_preference made = { .implementations = UINT64_MAX,
		.alignment = { 256, 256, 256, 256 },
		.schemes = CUBLASLT_REDUCTION_SCHEME_MASK };

	if (size < sizeof(made))
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(preference, &made, sizeof(made));
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = calloc(1, sizeof(**p));
	return cublasLtMatmulPreferenceInit_internal(*p, sizeof(**p));
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	free(p);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
		cublasLtMatmulPreference_t p,
		cublasLtMatmulPreferenceAttributes_t name, const void *value,
		size_t size)
{
	return set(p, of_preference, name, value, size);
}
