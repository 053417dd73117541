/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products by oneDNN or by a CBLAS, as configure chose. */
#include <stdlib.h>

#include "config.h"
#include "cpu/matmul.h"
#include "cpu/value.h"
#include "kernel.h"
#include "util/error.h"

/* Parts of operands that are widened at once; each is PART * PART values. */
enum { PART = 512 };

struct panel {
	float a[PART * PART], b[PART * PART], c[PART * PART];
};

struct matmul_engine {
	enum device_type type;
	struct primitives *primitives;	/* or else */
	struct panel *panel;		/* or else all products are of fp32 */
	int worst;			/* oneDNN's status */
};

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

/* oneDNN is free to leave instructions alone that the processor has. */
static const char *explain_no_bf16(void)
{
	if (primitives_ask(DEVICE_BF16) == PRIMITIVES_SLOW)
		return "bf16 products are computed in fp32 and rounded, which "
		       "is faster here than this processor's AVX512_BF16";
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512bf16"))
		return "bf16 products are computed in fp32 and rounded, as "
		       "oneDNN leaves this processor's AVX512_BF16 alone; "
		       "unset ONEDNN_MAX_CPU_ISA";
#endif
	return "bf16 products are computed in fp32 and rounded: this "
	       "processor has no AVX512_BF16";
}

const int matmul_sum_rows = 256, matmul_query_rows = 64;

/* Weak: oneDNN need not be built on OpenMP. */
void omp_set_num_threads(int threads) __attribute__((weak));

static void set_threads(int threads)
{
	if (omp_set_num_threads)
		omp_set_num_threads(threads);
}

static void multiply_floats(struct matmul_engine *engine,
			    const struct matmul *matmul)
{
	dnnl_status_t status = dnnl_sgemm(
		matmul->transpose_a ? 'T' : 'N',
		matmul->transpose_b ? 'T' : 'N', matmul->m, matmul->n,
		matmul->k, matmul->alpha, matmul->a, matmul->lda, matmul->b,
		matmul->ldb, matmul->add ? 1 : 0, matmul->c, matmul->ldc);

	if (status != dnnl_success)
		engine->worst = status;
}

static int report_failure(int status, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "oneDNN could not "
			     "multiply two matrices: %s%d; choose a smaller "
			     "--batch", status == dnnl_out_of_memory ?
			     "no memory, status " : "status ", status);
}
#else
#include <cblas.h>

static const char *explain_no_bf16(void)
{
	return "bf16 products are computed in fp32 and rounded: ddp-train was "
	       "built without oneDNN";
}

const int matmul_sum_rows = 1024, matmul_query_rows = 32;

/* Weak: a CBLAS need not be OpenBLAS. */
void openblas_set_num_threads(int threads) __attribute__((weak));

static void set_threads(int threads)
{
	if (openblas_set_num_threads)
		openblas_set_num_threads(threads);
}

static void multiply_floats(struct matmul_engine *engine,
			    const struct matmul *matmul)
{
	(void)engine;
	cblas_sgemm(CblasRowMajor,
		    matmul->transpose_a ? CblasTrans : CblasNoTrans,
		    matmul->transpose_b ? CblasTrans : CblasNoTrans,
		    matmul->m, matmul->n, matmul->k, matmul->alpha, matmul->a,
		    matmul->lda, matmul->b, matmul->ldb, matmul->add ? 1 : 0,
		    matmul->c, matmul->ldc);
}

static int report_failure(int status, struct ddp_error *error)
{
	(void)status;
	(void)error;
	return -1;
}
#endif

/* Widens a part of a matrix, and makes it dense. */
static void widen_part(enum device_type type, const void *from, int stride,
		       int rows, int columns, float *to)
{
	for (int row = 0; row < rows; row++)
		half_widen(type, value_at(type, from, (size_t)row * stride),
			   to + row * columns, columns);
}

INLINE void add_bias(enum device_type type, const void *bias, int columns,
		     float *x)
{
#pragma omp simd
	for (int i = 0; i < columns; i++)
		x[i] += load(type, bias, i);
}

/* Adds the bias (NULL: none) and writes the dense part where it belongs. */
KERNEL static void round_part(enum device_type type, float *from,
			      const void *bias, int rows, int columns,
			      void *to, int stride)
{
	for (int row = 0; row < rows; row++) {
		void *y = value_at(type, to, (size_t)row * stride);
		float *x = from + row * columns;

		if (bias)
			FOR_TYPE(type, add_bias(T, bias, columns, x));
		FOR_TYPE(type, round_row(T, x, columns, y));
	}
}

static int limit_part(int left)
{
	return left < PART ? left : PART;
}

/* Widens m rows from `row` on, and k columns, of op(a) into the panel. */
static void widen_a(enum device_type type, const struct matmul *matmul,
		    int row, int column, int m, int k, float *to)
{
	bool turned = matmul->transpose_a;
	size_t at = turned ? (size_t)column * matmul->lda + row :
			     (size_t)row * matmul->lda + column;

	widen_part(type, value_at(type, matmul->a, at), matmul->lda,
		   turned ? k : m, turned ? m : k, to);
}

static void widen_b(enum device_type type, const struct matmul *matmul,
		    int row, int column, int k, int n, float *to)
{
	bool turned = matmul->transpose_b;
	size_t at = turned ? (size_t)column * matmul->ldb + row :
			     (size_t)row * matmul->ldb + column;

	widen_part(type, value_at(type, matmul->b, at), matmul->ldb,
		   turned ? n : k, turned ? k : n, to);
}

/* The part of c that begins at this row and column. */
static void multiply_part(struct matmul_engine *engine,
			  const struct matmul *matmul, int row, int column)
{
	enum device_type type = engine->type;
	struct panel *panel = engine->panel;
	int m = limit_part(matmul->m - row);
	int n = limit_part(matmul->n - column);
	size_t at = (size_t)row * matmul->ldc + column;
	float *c = matmul->rounded ? panel->c : (float *)matmul->c + at;

	for (int i = 0; i < matmul->k; i += PART) {
		int k = limit_part(matmul->k - i);

		widen_a(type, matmul, row, i, m, k, panel->a);
		widen_b(type, matmul, i, column, k, n, panel->b);
		multiply_floats(engine, &(struct matmul){
			.transpose_a = matmul->transpose_a,
			.transpose_b = matmul->transpose_b,
			.add = matmul->add || i > 0, .m = m, .n = n, .k = k,
			.alpha = 1, .a = panel->a, .b = panel->b, .c = c,
			.lda = matmul->transpose_a ? m : k,
			.ldb = matmul->transpose_b ? k : n,
			.ldc = matmul->rounded ? n : matmul->ldc });
	}
	if (matmul->rounded)
		round_part(type, panel->c, matmul->bias ?
			   value_at(type, matmul->bias, column) : NULL, m, n,
			   value_at(type, matmul->c, at), matmul->ldc);
}

void matmul(struct matmul_engine *engine, const struct matmul *matmul)
{
	if (engine->primitives) {
		primitives_multiply(engine->primitives, matmul);
	} else if (engine->panel) {
		for (int row = 0; row < matmul->m; row += PART)
			for (int i = 0; i < matmul->n; i += PART)
				multiply_part(engine, matmul, row, i);
	} else {
		multiply_floats(engine, matmul);
	}
}

size_t matmul_count_bytes(enum device_type type)
{
	return type == DEVICE_FP32 ||
	       primitives_ask(type) == PRIMITIVES_FAST ? 0 :
	       sizeof(struct panel);
}

struct matmul_engine *matmul_create(enum device_type type, int threads,
				    struct ddp_error *error)
{
	struct matmul_engine *engine = calloc(1, sizeof(*engine));
	size_t bytes = matmul_count_bytes(type);

	if (engine && bytes > 0)
		engine->panel = malloc(bytes);
	else if (engine && type != DEVICE_FP32)
		engine->primitives = primitives_create();
	if (!engine || (type != DEVICE_FP32 && !engine->primitives &&
			!engine->panel)) {
		free(engine);
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for matrix "
			      "products; choose a smaller model");
		return NULL;
	}
	engine->type = type;
	set_threads(threads);
	return engine;
}

void matmul_destroy(struct matmul_engine *engine)
{
	if (!engine)
		return;
	primitives_destroy(engine->primitives);
	free(engine->panel);
	free(engine);
}

const char *matmul_explain(const struct matmul_engine *engine)
{
	if (!engine->panel)
		return NULL;
	if (engine->type == DEVICE_FP16)
		return "fp16 products are computed in fp32 and rounded, as on "
		       "every CPU";
	return explain_no_bf16();
}

int matmul_check(const struct matmul_engine *engine, struct ddp_error *error)
{
	int status = engine->primitives ?
		     primitives_check(engine->primitives) : engine->worst;

	return status == 0 ? 0 : report_failure(status, error);
}
