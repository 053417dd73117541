/* SPDX-License-Identifier: BSD-3-Clause */
/* The fully connected layer with bias and GELU, of products. */
#include "cuda/cuda.h"

void cuda_matmul(struct device *device, const struct op_matmul *op)
{
	linear_multiply(device, &(struct product){
		.transpose_b = true, .m = op->rows, .n = op->out, .k = op->in,
		.a = op->x, .lda = op->in, .b = op->weight, .ldb = op->in,
		.bias = op->bias, .c = op->pre ? op->pre : op->y,
		.ldc = op->out });
	if (op->pre)
		cuda_gelu(device, op->pre, op->y,
			  (size_t)op->rows * (size_t)op->out);
}

void cuda_matmul_backward(struct device *device,
			  const struct op_matmul_backward *op)
{
	if (op->dx)
		linear_multiply(device, &(struct product){
			.m = op->rows, .n = op->in, .k = op->out,
			.a = op->dy, .lda = op->out, .b = op->weight,
			.ldb = op->in, .slope = op->x_pre, .c = op->dx,
			.ldc = op->in });
	linear_multiply(device, &(struct product){
		.transpose_a = true, .add = op->accumulate, .m = op->out,
		.n = op->in, .k = op->rows, .a = op->dy, .lda = op->out,
		.b = op->x, .ldb = op->in, .c = op->dweight, .ldc = op->in });
	if (op->dbias)
		cuda_sum_rows(device, op->rows, op->out, op->dy,
			      op->accumulate, op->dbias);
}
