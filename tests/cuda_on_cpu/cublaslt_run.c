/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A matrix product in fp32 and its epilogue. Sums are of 128 terms each, as a
 * GPU's are of tiles, in the same order. Where the heuristic was allowed more,
 * they are of 32: added in another order each time (INPLACE, by atomics), or
 * rounded to the output's type.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../fakes/fake_stream.h"
#include "../fakes/half_bits.h"
#include "cublaslt.h"

enum { ROWS = 64, COLS = 4, TERMS = 128, SPLIT_TERMS = 32 };
static const char who[] = "cublasLtMatmul";

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR __attribute__((target_clones("avx2", "default")))
#else
#define VECTOR
#endif

static float get(const void *p, cudaDataType_t type, size_t i)
{
	if (type == CUDA_R_32F)
		return ((const float *)p)[i];
	return type == CUDA_R_16BF ? float_of_bf16(((const uint16_t *)p)[i]) :
		float_of_fp16(((const uint16_t *)p)[i]);
}

static void put(void *p, cudaDataType_t type, size_t i, float x)
{
	if (type == CUDA_R_32F)
		((float *)p)[i] = x;
	else
		((uint16_t *)p)[i] = type == CUDA_R_16BF ? bf16_of_float(x) :
			fp16_of_float(x);
}

static void touch(const struct lt_product *p, const void *at,
		  const struct lt_layout *l, int how)
{
	size_t size = lt_size(l->type);

	if ((uint64_t)l->ld == l->rows) {
		p->touch(at, l->rows * l->cols * size, how, who);
		return;
	}
	for (uint64_t j = 0; j < l->cols; j++)
		p->touch((const char *)at + (size_t)l->ld * j * size,
			 l->rows * size, how, who);
}

static void touch_all(const struct lt_product *p)
{
	uint32_t epilogue = p->desc.epilogue;
	struct lt_layout aux = p->layout_d;

	touch(p, p->a, &p->layout_a, FAKE_STREAM_READ);
	touch(p, p->b, &p->layout_b, FAKE_STREAM_READ);
	if (p->beta != 0)
		touch(p, p->c, &p->layout_c, FAKE_STREAM_READ);
	if (p->workspace_bytes > 0)
		p->touch(p->workspace, p->workspace_bytes, FAKE_STREAM_WRITE,
			 who);
	if (epilogue & CUBLASLT_EPILOGUE_BIAS)
		p->touch(p->desc.bias, lt_size(lt_bias_type(p)) *
			 p->layout_d.rows, FAKE_STREAM_READ, who);
	aux.ld = p->desc.aux_ld;
	if (epilogue & 128)
		touch(p, p->desc.aux, &aux, epilogue & 64 ? FAKE_STREAM_READ :
		      FAKE_STREAM_WRITE);
	touch(p, p->d, &p->layout_d, FAKE_STREAM_WRITE);
}

static size_t round_up(size_t n, size_t step)
{
	return (n + step - 1) / step * step;
}

/* 10 bits of fraction, to nearest, ties away from zero, as cvt.rna.tf32.f32 */
static float round_to_tf32(float x)
{
	uint32_t bits = bits_of_float(x);

	if ((bits & 0x7f800000) == 0x7f800000)
		return x;
	return float_of_bits((bits + 0x1000) & 0xffffe000);
}

/* Element (row, column) of a layout at row * down + column * right, in fp32 */
static float *widen(const struct lt_product *p, const void *at,
		    const struct lt_layout *l, size_t down, size_t right,
		    size_t room)
{
	bool tf32 = p->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
	float *x = calloc(room, sizeof(*x));

	for (uint64_t j = 0; j < l->cols; j++)
		for (uint64_t i = 0; i < l->rows; i++) {
			float value = get(at, l->type, i + (size_t)l->ld * j);

			x[i * down + j * right] = tf32 ? round_to_tf32(value) :
				value;
		}
	return x;
}

struct split {
	size_t terms;
	bool backward;
	cudaDataType_t type;		/* of parts of the sum */
};

static struct split choose_split(const struct lt_product *p)
{
	static bool backward;
	struct split split = { TERMS, false, CUDA_R_32F };

	if (p->scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE)
		split = (struct split){ SPLIT_TERMS, backward = !backward,
			CUDA_R_32F };
	else if (p->scheme == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
		split = (struct split){ SPLIT_TERMS, false, p->layout_d.type };
	return split;
}

static void round_part(cudaDataType_t type, float part[COLS][ROWS])
{
	for (size_t i = 0; i < COLS * ROWS && type != CUDA_R_32F; i++) {
		uint16_t bits;

		put(&bits, type, 0, part[0][i]);
		part[0][i] = get(&bits, type, 0);
	}
}

/* a [k][width], b [n][k]: sums of ROWS rows and COLS columns */
VECTOR static void multiply(const float *a, const float *b, size_t width,
			    size_t k, struct split split,
			    float sum[COLS][ROWS])
{
	size_t parts = (k + split.terms - 1) / split.terms;
	float part[COLS][ROWS];

	memset(sum, 0, COLS * sizeof(*sum));
	for (size_t each = 0; each < parts; each++) {
		size_t first = split.terms *
			(split.backward ? parts - 1 - each : each);

		memset(part, 0, sizeof(part));
		for (size_t l = first; l < k && l < first + split.terms; l++)
			for (int j = 0; j < COLS; j++)
				for (int i = 0; i < ROWS; i++)
					part[j][i] += a[l * width + i] *
						b[j * k + l];
		round_part(split.type, part);
		for (int j = 0; j < COLS; j++)
			for (int i = 0; i < ROWS; i++)
				sum[j][i] += part[j][i];
	}
}

static float tanh_of(float x)
{
	return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}

static float gelu(float x)
{
	return 0.5f * x * (1 + tanh_of(x));
}

static float gelu_slope(float x)
{
	float t = tanh_of(x);

	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f *
		(1 + 3 * 0.044715f * x * x);
}

static void finish(const struct lt_product *p, size_t i, size_t j, float sum)
{
	const struct lt_desc *desc = &p->desc;
	cudaDataType_t type = p->layout_d.type;
	size_t aux = i + j * (size_t)desc->aux_ld;

	sum *= p->alpha;
	if (p->beta != 0)
		sum += p->beta * get(p->c, type, i + j *
				     (size_t)p->layout_c.ld);
	if (desc->epilogue & CUBLASLT_EPILOGUE_BIAS)
		sum += get(desc->bias, lt_bias_type(p), i);
	if (desc->epilogue & 64) {
		sum *= gelu_slope(get(desc->aux, type, aux));
	} else if (desc->epilogue & CUBLASLT_EPILOGUE_GELU) {
		if (desc->epilogue & 128)
			put(desc->aux, type, aux, sum);
		sum = gelu(sum);
	}
	put(p->d, type, i + j * (size_t)p->layout_d.ld, sum);
}

int lt_run(void *product)
{
	struct lt_product *p = product;
	size_t m = lt_m(p), n = p->layout_d.cols, k = lt_k(p);
	size_t width = round_up(m, ROWS), height = round_up(n, COLS);
	bool a_by_k = p->desc.transpose_a == CUBLAS_OP_N;
	bool b_by_n = p->desc.transpose_b == CUBLAS_OP_N;
	struct split split = choose_split(p);
	float *a, *b, sum[COLS][ROWS];

	touch_all(p);
	a = widen(p, p->a, &p->layout_a, a_by_k ? 1 : width,
		  a_by_k ? width : 1, width * k);
	b = widen(p, p->b, &p->layout_b, b_by_n ? 1 : k, b_by_n ? k : 1,
		  height * k);
	for (size_t j = 0; j < n; j += COLS)
		for (size_t i = 0; i < m; i += ROWS) {
			multiply(a + i, b + j * k, width, k, split,
				 sum);
			for (size_t y = 0; y < COLS && j + y < n; y++)
				for (size_t x = 0; x < ROWS && i + x < m; x++)
					finish(p, i + x, j + y, sum[y][x]);
		}
	if (p->workspace_bytes > 0)
		memset(p->workspace, 0xff, p->workspace_bytes);
	free(a);
	free(b);
	free(p);
	return 1;
}
