/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake cuBLASLt: products of each type against sums in fp64, epilogues, and
 * what it refuses because NVIDIA's documentation does not list it.
 */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fakes/half_bits.h"

enum { AUXILIARY = CUBLASLT_EPILOGUE_GELU_AUX & CUBLASLT_EPILOGUE_DGELU };
enum { M = 72, N = 19, K = 150, AUX = 80, ROOM = 64 << 10 };

struct product {
	cudaDataType_t in, out;
	bool transpose_a, transpose_b;
	float alpha, beta;
	uint32_t epilogue;
	int ld_more;			/* of all matrices */
	uint32_t alignment;		/* that the heuristic is told */
	int64_t aux_ld;
	size_t bias_off, workspace;
	bool tf32;
	bool inexact;			/* sums are rounded */
	int schemes;			/* of splitting a sum; 0: unset */
	bool another;			/* the algorithm is of another shape */
	bool stale_bias, stale_aux;	/* pointers of another epilogue */
	int bias_type;			/* 0: unset */
};

static cublasLtHandle_t handle;
static cudaStream_t stream;
static char *device, host[8][ROOM];	/* A B C D bias aux workspace */
static int wrong;

static void expect(bool ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "products: %s\n", what);
	wrong |= !ok;
}

static void *at(int which) { return device + which * ROOM; }

static void put(int which, cudaDataType_t type, size_t i, float x)
{
	if (type == CUDA_R_32F)
		((float *)(void *)host[which])[i] = x;
	else
		((uint16_t *)(void *)host[which])[i] = type == CUDA_R_16BF ?
			bf16_of_float(x) : fp16_of_float(x);
}

static float get(int which, cudaDataType_t type, size_t i)
{
	uint16_t bits = ((uint16_t *)(void *)host[which])[i];

	if (type == CUDA_R_32F)
		return ((float *)(void *)host[which])[i];
	return type == CUDA_R_16BF ? float_of_bf16(bits) : float_of_fp16(bits);
}

static void fill(const struct product *p)
{
	static const size_t values = ROOM / 4;
	/* more digits than TF32's */
	float unit = p->tf32 || p->inexact ? 16.003f : 16;

	for (size_t i = 0; i < values; i++) {
		put(0, p->in, i, (float)((int)(i * 31 % 41) - 20) / unit);
		put(1, p->in, i, (float)((int)(i * 17 % 37) - 18) / unit);
		put(2, p->out, i, (float)((int)(i * 13 % 29) - 14) / 4);
		put(4, p->out, i, (float)((int)(i * 11 % 23) - 11) / 8);
		put(5, p->out, i, (float)((int)(i * 7 % 19) - 9) / 8);
	}
	for (int i = 0; i < 6; i++)
		cudaMemcpyAsync(at(i), host[i], ROOM, cudaMemcpyHostToDevice,
				stream);
}

static cublasLtMatrixLayout_t make_layout(cudaDataType_t type, bool transpose,
					  int rows, int cols, int more)
{
	cublasLtMatrixLayout_t layout;

	if (transpose)
		cublasLtMatrixLayoutCreate(&layout, type, (uint64_t)cols,
					   (uint64_t)rows, cols + more);
	else
		cublasLtMatrixLayoutCreate(&layout, type, (uint64_t)rows,
					   (uint64_t)cols, rows + more);
	return layout;
}

static cublasLtMatmulDesc_t make_desc(const struct product *p)
{
	cublasLtMatmulDesc_t desc;
	cublasOperation_t t = CUBLAS_OP_T;
	void *bias = (char *)at(4) + p->bias_off, *aux = at(5);

	cublasLtMatmulDescCreate(&desc, p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 :
				 CUBLAS_COMPUTE_32F, CUDA_R_32F);
	if (p->transpose_a)
		cublasLtMatmulDescSetAttribute(desc,
			CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof(t));
	if (p->transpose_b)
		cublasLtMatmulDescSetAttribute(desc,
			CUBLASLT_MATMUL_DESC_TRANSB, &t, sizeof(t));
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
				       &p->epilogue, sizeof(p->epilogue));
	if (p->epilogue & CUBLASLT_EPILOGUE_BIAS || p->stale_bias)
		cublasLtMatmulDescSetAttribute(desc,
			CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
	if (p->epilogue & AUXILIARY || p->stale_aux)
		cublasLtMatmulDescSetAttribute(desc,
			CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux,
			sizeof(aux));
	cublasLtMatmulDescSetAttribute(desc,
		CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->aux_ld,
		sizeof(p->aux_ld));
	if (p->bias_type)
		cublasLtMatmulDescSetAttribute(desc,
			CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &p->bias_type,
			sizeof(p->bias_type));
	return desc;
}

/* 0, or what the heuristic or the product says. */
static cublasStatus_t multiply(const struct product *p)
{
	cublasLtMatmulDesc_t desc = make_desc(p);
	cublasLtMatrixLayout_t a = make_layout(p->in, p->transpose_a, M, K,
					       p->ld_more);
	cublasLtMatrixLayout_t b = make_layout(p->in, p->transpose_b, K, N,
					       p->ld_more);
	cublasLtMatrixLayout_t d = make_layout(p->out, false, M, N,
					       p->ld_more);
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t result;
	cublasStatus_t status;
	int found;

	cublasLtMatmulPreferenceCreate(&preference);
	for (int i = 0; i < 4; i++)
		cublasLtMatmulPreferenceSetAttribute(preference,
			CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES +
			(unsigned)i, &p->alignment, sizeof(p->alignment));
	cublasLtMatmulPreferenceSetAttribute(preference,
		CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace,
		sizeof(p->workspace));
	if (p->schemes)
		cublasLtMatmulPreferenceSetAttribute(preference,
			CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
			&p->schemes, sizeof(p->schemes));
	status = cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, d, d,
		preference, 1, &result, &found);
	if (status == CUBLAS_STATUS_SUCCESS && p->another)
		d = make_layout(p->out, false, M, N, p->ld_more + 8);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasLtMatmul(handle, desc, &p->alpha, at(0), a,
			at(1), b, &p->beta, at(2), d, at(3), d, &result.algo,
			at(6), result.workspaceSize, stream);
	return status;
}

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
}

/* An input as it is multiplied: TF32 has 11 digits with the leading one. */
static double factor(const struct product *p, int which, size_t i)
{
	double value = (double)get(which, p->in, i), part;
	int exponent;

	if (!p->tf32)
		return value;
	part = frexp(value, &exponent);
	return ldexp(round(ldexp(part, 11)), exponent - 11);
}

static double wanted(const struct product *p, size_t i, size_t j)
{
	size_t lda = (size_t)((p->transpose_a ? K : M) + p->ld_more);
	size_t ldb = (size_t)((p->transpose_b ? N : K) + p->ld_more);
	double sum = 0;

	for (size_t k = 0; k < K; k++)
		sum += factor(p, 0, p->transpose_a ? k + i * lda :
			      i + k * lda) *
			factor(p, 1, p->transpose_b ? j + k * ldb :
			       k + j * ldb);
	sum = (double)p->alpha * sum + (double)p->beta *
		(double)get(2, p->out, i + j * (size_t)(M + p->ld_more));
	if (p->epilogue & CUBLASLT_EPILOGUE_BIAS)
		sum += (double)get(4, p->out, i);
	if (p->epilogue & CUBLASLT_EPILOGUE_GELU)
		sum = gelu(sum);
	return sum;
}

static void read_back(int which)
{
	cudaMemcpyAsync(host[which], at(which), ROOM, cudaMemcpyDeviceToHost,
			stream);
}

/* But for one rounding */
static bool near(const struct product *p, float got, double want)
{
	double limit = p->out == CUDA_R_32F ? 2e-6 :
		p->out == CUDA_R_16BF ? 0x1p-8 : 0x1p-11;

	return fabs((double)got - want) <= limit * (1 + fabs(want));
}

/* The worst error of values of D, of the largest of which a bit is 2^-bits */
static void test(const struct product *p, const char *what)
{
	double worst = 0, scale = 0, limit = p->out == CUDA_R_32F ? 2e-6 :
		p->out == CUDA_R_16BF ? 0x1p-8 : 0x1p-11;

	fill(p);
	expect(multiply(p) == CUBLAS_STATUS_SUCCESS, what);
	cudaMemcpyAsync(host[3], at(3), ROOM, cudaMemcpyDeviceToHost, stream);
	for (size_t j = 0; j < N; j++)
		for (size_t i = 0; i < M; i++) {
			double want = wanted(p, i, j), got = (double)get(3,
				p->out, i + j * (size_t)(M + p->ld_more));

			worst = fmax(worst, fabs(got - want));
			scale = fmax(scale, fabs(want));
		}
	expect(worst <= limit * scale, what);
}

/* What goes into the GELU is in aux, rounded from the same sum. */
static void test_aux(const struct product *p)
{
	struct product before = *p;

	before.epilogue &= ~(uint32_t)CUBLASLT_EPILOGUE_GELU;
	read_back(5);
	for (size_t j = 0; j < N; j++)
		for (size_t i = 0; i < M; i++)
			expect(near(p, get(5, p->out, i + j * AUX),
				    wanted(&before, i, j)),
			       "what goes into the GELU");
}

static void test_types(void)
{
	static const cudaDataType_t types[] = { CUDA_R_32F, CUDA_R_16BF,
		CUDA_R_16F };
	struct product p = { .alpha = 1, .epilogue = 1, .alignment = 256 };

	for (int i = 0; i < 12; i++) {
		p.in = p.out = types[i % 3];
		p.transpose_a = i / 3 & 1;
		p.transpose_b = i / 6 & 1;
		p.ld_more = i % 4;
		p.workspace = i % 2 ? ROOM : 0;
		test(&p, "a product");
		p.out = CUDA_R_32F;
		p.beta = 0.5f;
		test(&p, "a product into fp32, added");
		p.beta = 0;
	}
	p.in = p.out = CUDA_R_32F;
	p.tf32 = true;
	test(&p, "a product by TF32");
	p.tf32 = false;
	p.in = p.out = CUDA_R_16BF;
	p.epilogue = CUBLASLT_EPILOGUE_BIAS;
	test(&p, "a product with bias");
	p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
	p.aux_ld = AUX;
	test(&p, "a product with bias and GELU");
	test_aux(&p);
	p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
	test(&p, "a product with GELU");
	test_aux(&p);
}

/* Whether two products in succession have the same bits */
static bool are_same(const struct product *p)
{
	char *first = host[7];

	fill(p);
	for (int i = 0; i < 2; i++) {
		expect(multiply(p) == CUBLAS_STATUS_SUCCESS, "a split product");
		cudaMemcpyAsync(i ? host[3] : first, at(3), ROOM,
				cudaMemcpyDeviceToHost, stream);
	}
	return memcmp(first, host[3], M * N * sizeof(float)) == 0;
}

/* How sums may be split is what the heuristic was told. */
static void test_splits(void)
{
	struct product p = { .in = CUDA_R_32F, .out = CUDA_R_32F, .alpha = 1,
		.epilogue = 1, .alignment = 256, .inexact = true };
	char *once = malloc(ROOM);

	expect(!are_same(&p), "any split: the same bits");
	p.schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	expect(are_same(&p), "a split in fp32: other bits");
	p.in = p.out = CUDA_R_16BF;
	expect(are_same(&p), "a split in fp32: other bits of bf16");
	memcpy(once, host[3], ROOM);
	p.schemes = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
	expect(are_same(&p), "a split in bf16: other bits");
	expect(memcmp(once, host[3], M * N * 2) != 0, "a split in bf16: as "
	       "in fp32");
	free(once);
}

static void test_refusals(void)
{
	const struct product good = { .in = CUDA_R_16BF, .out = CUDA_R_16BF,
		.alpha = 1, .epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
		.alignment = 256, .aux_ld = AUX };
	struct product p = good;

	expect(multiply(&p) == CUBLAS_STATUS_SUCCESS, "what is right");
	p.aux_ld = M + 1;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "aux by odd rows");
	p.aux_ld = M - 8;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "aux by short rows");
	p = good;
	p.bias_off = 4;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "a bias not at 16");
	p = good;
	p.bias_type = CUDA_R_16F;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "a bias of another type");
	p = good;
	p.ld_more = -1;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "short columns");
	p = good;
	p.out = CUDA_R_16F;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "bf16 into fp16");
	p = good;
	p.epilogue = CUBLASLT_EPILOGUE_RELU;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "an epilogue it lacks");
	p = good;
	p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	p.stale_bias = true;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "a bias that is not "
	       "added");
	p.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "a bias beside GELU");
	p.epilogue = CUBLASLT_EPILOGUE_BIAS;
	p.stale_aux = true;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "aux beside a bias");
	p = good;
	p.another = true;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "another's algorithm");
	device += 16;
	p = good;
	expect(multiply(&p) != CUBLAS_STATUS_SUCCESS, "matrices not at 256");
	p.alignment = 16;
	expect(multiply(&p) == CUBLAS_STATUS_SUCCESS, "matrices at 16, as "
	       "was said");
	device -= 16;
}

int main(void)
{
	cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	cudaMalloc((void **)&device, 8 * ROOM);
	cublasLtCreate(&handle);
	test_types();
	test_splits();
	test_refusals();
	cudaStreamSynchronize(stream);
	return wrong;
}
