/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products by oneDNN or by a CBLAS, as configure chose. */
#include "config.h"
#include "cpu/cpu.h"
#include "layout/error.h"

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

const int matmul_sum_rows = 256, matmul_query_rows = 64;

/* Weak: oneDNN need not be built on OpenMP. */
void omp_set_num_threads(int threads) __attribute__((weak));

static dnnl_status_t worst;

void matmul_set_threads(int threads)
{
	if (omp_set_num_threads)
		omp_set_num_threads(threads);
}

void matmul(const struct matmul *matmul)
{
	dnnl_status_t status = dnnl_sgemm(
		matmul->transpose_a ? 'T' : 'N',
		matmul->transpose_b ? 'T' : 'N', matmul->m, matmul->n,
		matmul->k, matmul->alpha, matmul->a, matmul->lda, matmul->b,
		matmul->ldb, matmul->add ? 1 : 0, matmul->c, matmul->ldc);

	if (status != dnnl_success)
		worst = status;
}

int matmul_check(struct ddp_error *error)
{
	if (worst == dnnl_success)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "oneDNN could not "
			     "multiply two matrices: %s%d; choose a smaller "
			     "--batch", worst == dnnl_out_of_memory ?
			     "no memory, status " : "status ", worst);
}
#else
#include <cblas.h>

const int matmul_sum_rows = 1024, matmul_query_rows = 32;

/* Weak: a CBLAS need not be OpenBLAS. */
void openblas_set_num_threads(int threads) __attribute__((weak));

void matmul_set_threads(int threads)
{
	if (openblas_set_num_threads)
		openblas_set_num_threads(threads);
}

void matmul(const struct matmul *matmul)
{
	cblas_sgemm(CblasRowMajor,
		    matmul->transpose_a ? CblasTrans : CblasNoTrans,
		    matmul->transpose_b ? CblasTrans : CblasNoTrans,
		    matmul->m, matmul->n, matmul->k, matmul->alpha, matmul->a,
		    matmul->lda, matmul->b, matmul->ldb, matmul->add ? 1 : 0,
		    matmul->c, matmul->ldc);
}

int matmul_check(struct ddp_error *error)
{
	(void)error;
	return 0;
}
#endif
