/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuBLASLt for a trainer: products of fp32, bf16 and fp16 in streams. It takes
 * what NVIDIA's documentation lists ("cublasLtMatmul", the table of types, and
 * the comments of cublasLt.h), and refuses the rest with a line on stderr: the
 * real one may do anything then.
 *
 *   EMU_EPILOGUES=no   the heuristic offers no epilogue
 *   EMU_REFUSED_K=N    nor any product whose sums have N terms
 *   EMU_FAULT=N        product N, from 0 on, makes the GPU fail, as by an access
 *                      to what is not its memory
 *   EMU_PRODUCTS=1     at the end, how many products had which epilogue
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fakes/fake_stream.h"
#include "cublaslt.h"

#define OK CUBLAS_STATUS_SUCCESS
#define INVALID CUBLAS_STATUS_INVALID_VALUE
#define UNSUPPORTED CUBLAS_STATUS_NOT_SUPPORTED

enum { WORKSPACE = 64 << 10, ALGORITHM = 0x616c676f };

/* What the opaque algorithm holds: which problem it is for, how it splits. */
struct algorithm {
	uint32_t magic, alignment[4], workspace, scheme;
	uint64_t problem;
};

_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t),
	       "what is opaque has room");

/* ---- what is refused */

static bool is_epilogue(uint32_t epilogue)
{
	switch (epilogue) {
	case CUBLASLT_EPILOGUE_DEFAULT:
	case CUBLASLT_EPILOGUE_BIAS:
	case CUBLASLT_EPILOGUE_GELU:
	case CUBLASLT_EPILOGUE_GELU_AUX:
	case CUBLASLT_EPILOGUE_GELU_BIAS:
	case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
	case CUBLASLT_EPILOGUE_DGELU:
		return true;
	default:
		return false;
	}
}

static bool are_types(const struct lt_product *p)
{
	cudaDataType_t in = p->layout_a.type, out = p->layout_d.type;

	return (in == CUDA_R_32F || in == CUDA_R_16F || in == CUDA_R_16BF) &&
		p->layout_b.type == in && (out == in || out == CUDA_R_32F) &&
		p->layout_c.type == out && p->desc.scale == CUDA_R_32F &&
		(p->desc.compute == CUBLAS_COMPUTE_32F ||
		 p->desc.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
		 (p->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 &&
		  in == CUDA_R_32F));
}

static bool is_layout(const struct lt_layout *l)
{
	return l->order == CUBLASLT_ORDER_COL && l->batch == 1 && l->rows > 0 &&
		l->cols > 0 && l->ld >= (int64_t)l->rows;
}

static const char *check_epilogue(const struct lt_product *p)
{
	const struct lt_desc *desc = &p->desc;

	if (!is_epilogue(desc->epilogue))
		return "this epilogue is not offered";
	if (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return NULL;
	if (lt_bias_type(p) != p->layout_d.type)
		return "a bias is of the type of D";
	if ((uintptr_t)desc->bias % 16)
		return "a bias is to be at a multiple of 16 bytes";
	if (!(desc->epilogue & 128))
		return NULL;
	if ((int)desc->aux_type >= 0 && desc->aux_type != p->layout_d.type)
		return "what is auxiliary is of the type of D";
	if ((uintptr_t)desc->aux % 16)
		return "what is auxiliary is to be at a multiple of 16 bytes";
	if (desc->aux_ld % 8 || desc->aux_ld < (int64_t)p->layout_d.rows)
		return "the leading dimension of what is auxiliary is to be a "
			"multiple of 8 and not below the rows of D";
	return NULL;
}

/* Why it is refused; NULL: it is not. */
static const char *check(const struct lt_product *p)
{
	const struct lt_layout *b = &p->layout_b, *d = &p->layout_d;
	bool plain = p->desc.transpose_b == CUBLAS_OP_N;

	if (!are_types(p))
		return "these types are not listed";
	if (!is_layout(&p->layout_a) || !is_layout(b) ||
	    !is_layout(&p->layout_c) || !is_layout(d))
		return "a layout is empty, by rows, or has a leading "
			"dimension below its rows";
	if (lt_m(p) != d->rows || lt_k(p) != (plain ? b->rows : b->cols) ||
	    d->cols != (plain ? b->cols : b->rows) ||
	    p->layout_c.rows != d->rows || p->layout_c.cols != d->cols)
		return "the shapes do not fit";
	if (p->desc.pointer_mode != CUBLASLT_POINTER_MODE_HOST)
		return "alpha and beta are the host's here";
	return check_epilogue(p);
}

static struct lt_product collect(cublasLtMatmulDesc_t desc,
		cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
		cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
	return (struct lt_product){
		.desc = *(const struct lt_desc *)(void *)desc,
		.layout_a = *(const struct lt_layout *)(void *)a,
		.layout_b = *(const struct lt_layout *)(void *)b,
		.layout_c = *(const struct lt_layout *)(void *)c,
		.layout_d = *(const struct lt_layout *)(void *)d,
	};
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15u ^ hash >> 29;
}

static uint64_t hash_layout(uint64_t hash, const struct lt_layout *l)
{
	return mix(mix(mix(mix(hash, l->type), l->rows), l->cols),
		   (uint64_t)l->ld);
}

/* An algorithm is for a problem's types, shapes and epilogue. */
static uint64_t identify(const struct lt_product *p)
{
	uint64_t hash = mix(p->desc.epilogue, (uint64_t)p->desc.transpose_a * 2
			    + (uint64_t)p->desc.transpose_b);

	hash = mix(hash, (uint64_t)p->desc.compute);
	return hash_layout(hash_layout(hash_layout(hash_layout(hash,
		&p->layout_a), &p->layout_b), &p->layout_c), &p->layout_d);
}

/* Returns true for the one product that makes the GPU fail. */
static bool is_fault(void)
{
	static long product;
	const char *text = getenv("EMU_FAULT");

	return text && product++ == strtol(text, NULL, 10);
}

static cublasStatus_t refuse(const char *why)
{
	fprintf(stderr, "cuda_on_cpu: cublasLtMatmul is refused: %s\n", why);
	return INVALID;
}

/* ---- what was asked for */

static unsigned long counts[3][1024];	/* by type of A, by epilogue */

static void count_product(const struct lt_product *p)
{
	int type = p->layout_a.type == CUDA_R_32F ? 0 :
		p->layout_a.type == CUDA_R_16BF ? 1 : 2;

	counts[type][p->desc.epilogue % 1024]++;
}

__attribute__((destructor)) static void print_counts(void)
{
	static const char *const types[] = { "fp32", "bf16", "fp16" };

	for (int i = 0; i < 3 * 1024 && getenv("EMU_PRODUCTS"); i++)
		if (counts[i / 1024][i % 1024] > 0)
			fprintf(stderr, "cuda_on_cpu: %lu products of %s with "
				"epilogue %d\n", counts[i / 1024][i % 1024],
				types[i / 1024], i % 1024);
}

/* ---- algorithms and products */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	*handle = calloc(1, 64);
	return OK;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	free(handle);
	return OK;
}

size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return status == OK ? "CUBLAS_STATUS_SUCCESS" : status == INVALID ?
		"CUBLAS_STATUS_INVALID_VALUE" : status == UNSUPPORTED ?
		"CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
	return cublasLtGetStatusString(status);
}

/* Of the ways to split a sum that are allowed, that which keeps least. */
static uint32_t choose_scheme(uint32_t allowed)
{
	static const uint32_t worst_first[] = {
		CUBLASLT_REDUCTION_SCHEME_INPLACE,
		CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE,
		CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
	};

	for (int i = 0; i < 3; i++)
		if (allowed & worst_first[i])
			return worst_first[i];
	return CUBLASLT_REDUCTION_SCHEME_NONE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
		cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
		cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
		cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t p,
		int want, cublasLtMatmulHeuristicResult_t *results, int *found)
{
	struct lt_product product = collect(desc, a, b, c, d);
	const struct lt_preference *preference = (void *)p;
	struct algorithm algorithm = { .magic = ALGORITHM };
	const char *epilogues = getenv("EMU_EPILOGUES");
	const char *refused = getenv("EMU_REFUSED_K");

	*found = 0;
	if (!handle || want < 1)
		return INVALID;
	if (check(&product) || (epilogues && strcmp(epilogues, "no") == 0 &&
				product.desc.epilogue !=
				CUBLASLT_EPILOGUE_DEFAULT) ||
	    (refused && lt_k(&product) == strtoul(refused, NULL, 10)))
		return UNSUPPORTED;
	algorithm.problem = identify(&product);
	algorithm.workspace = preference->workspace >= WORKSPACE ? WORKSPACE :
		0;
	algorithm.scheme = choose_scheme(preference->schemes);
	memcpy(algorithm.alignment, preference->alignment,
	       sizeof(algorithm.alignment));
	memset(results, 0, sizeof(*results));
	memcpy(&results->algo, &algorithm, sizeof(algorithm));
	results->workspaceSize = algorithm.workspace;
	results->wavesCount = 1;
	*found = 1;
	return OK;
}

/* It does not say how it splits a sum. */
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
		const cublasLtMatmulAlgo_t *algorithm,
		cublasLtMatmulAlgoConfigAttributes_t name, void *value,
		size_t size, size_t *written)
{
	(void)algorithm;
	memset(value, 0, size);
	if (name == CUBLASLT_ALGO_CONFIG_SPLITK_NUM && size >= 4)
		memcpy(value, &(uint32_t){ 1 }, 4);
	if (written)
		*written = size;
	return OK;
}

static const char *check_algorithm(const struct lt_product *p,
				   const struct algorithm *algorithm)
{
	const void *pointers[] = { p->a, p->b, p->beta != 0 ? p->c : NULL,
		p->d };

	if (algorithm->magic != ALGORITHM ||
	    algorithm->problem != identify(p))
		return "the algorithm is for another problem";
	if (p->workspace_bytes < algorithm->workspace)
		return "the algorithm needs more workspace";
	if ((uintptr_t)p->workspace % 256 && algorithm->workspace)
		return "the workspace is to be at a multiple of 256 bytes";
	for (int i = 0; i < 4; i++)
		if ((uintptr_t)pointers[i] % algorithm->alignment[i])
			return "a matrix is not as aligned as the heuristic "
				"was told (MIN_ALIGNMENT, 256 unless set)";
	return NULL;
}

/* Why this call is refused; NULL: it is not, and p is ready to run. */
static const char *check_call(struct lt_product *p,
			      const cublasLtMatmulAlgo_t *algo)
{
	const char *why = check(p);
	struct algorithm algorithm = { .workspace = 0 };

	if (!why && (!(p->desc.epilogue & 128) != !p->desc.aux ||
		     !(p->desc.epilogue & CUBLASLT_EPILOGUE_BIAS) !=
		     !p->desc.bias))
		why = "the epilogue's pointer is missing, or it has that of "
			"another one, which is NOT allowed";
	if (!why && p->c == p->d && p->layout_c.ld != p->layout_d.ld)
		why = "C and D are at one place with two leading dimensions";
	if (!why && algo) {
		memcpy(&algorithm, algo, sizeof(algorithm));
		why = check_algorithm(p, &algorithm);
	}
	p->workspace_bytes = algorithm.workspace;
	p->scheme = algorithm.scheme;
	return why;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle,
		cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
		cublasLtMatrixLayout_t layout_a, const void *b,
		cublasLtMatrixLayout_t layout_b, const void *beta,
		const void *c, cublasLtMatrixLayout_t layout_c, void *d,
		cublasLtMatrixLayout_t layout_d,
		const cublasLtMatmulAlgo_t *algo, void *workspace,
		size_t workspace_bytes, cudaStream_t stream)
{
	struct lt_product all = collect(desc, layout_a, layout_b, layout_c,
					layout_d), *p = malloc(sizeof(*p));
	struct fake_stream *fake = fake_stream_of(stream);
	const char *why = "it is not asked for in a stream";

	all.a = a;
	all.b = b;
	all.c = c;
	all.d = d;
	all.alpha = *(const float *)alpha;
	all.beta = *(const float *)beta;
	all.workspace = workspace;
	all.workspace_bytes = workspace_bytes;
	if (handle && fake)
		why = check_call(&all, algo);
	if (why) {
		free(p);
		return refuse(why);
	}
	if (is_fault()) {
		fake->fail(cudaErrorIllegalAddress);
		free(p);
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
	all.touch = fake->touch;
	count_product(&all);
	*p = all;
	fake->enqueue(stream, "cublasLtMatmul", lt_run, p);
	return OK;
}
