/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Causal attention as by Dao et al. 2022 (FlashAttention): the scores of a few
 * query rows of one head at a time. The backward pass computes them again from
 * the log of the sum of their exponentials.
 */
#include <math.h>

#include "cpu/cpu.h"
#include "cpu/vexp.h"

/*
 * One head of one sequence; rows of q, k, v and their gradients are stride
 * apart, those of out and dout width.
 */
struct head {
	int context, size, stride, width;
	float scale;
	const float *q, *k, *v;
	float *scores;			/* of a block of query rows */
	const float *out, *dout, *lse;	/* from here on backward's */
	float *dq, *dk, *dv, *dscores;
};

/* Floats from row to row of scores: whole vectors, and no power of two. */
static int get_score_stride(int context)
{
	return round_to_lanes(context) + LANES;
}

size_t cpu_count_attention_work(const struct device_shape *shape)
{
	size_t floats = (size_t)ATTENTION_ROWS *
		get_score_stride(shape->context);

	return 2 * floats * sizeof(float);
}

/* Many rows suit the engine; few rows compute less that is masked. */
static int count_block_rows(const struct head *head, int begin)
{
	int left = head->context - begin;

	return left < matmul_query_rows ? left : matmul_query_rows;
}

/* What is the same in all heads, and where head number i begins. */
static struct head find_head(const float *qkv, int context, int heads,
			     int width, int i, void *work)
{
	int size = width / heads, stride = 3 * width;
	const float *row = qkv + (size_t)(i / heads) * context * stride;
	struct head head = {
		.context = context, .size = size, .stride = stride,
		.width = width, .scale = 1 / sqrtf((float)size),
		.q = row + i % heads * size, .scores = work
	};

	head.k = head.q + width;
	head.v = head.k + width;
	return head;
}

/* Where head number i begins in out. */
static size_t find_out(const struct head *head, int heads, int i)
{
	return (size_t)(i / heads) * head->context * head->width +
	       (size_t)(i % heads * head->size);
}

/*
 * Rows of scores become probabilities; row i has first + 1 + i of them, and
 * then zeros up to columns.
 */
KERNEL static void softmax_rows(int rows, int first, int columns, int stride,
				float *scores, float *lse)
{
	for (int row = 0; row < rows; row++) {
		float *s = scores + (size_t)row * stride;
		int count = first + 1 + row;

		lse[row] = (float)vsoftmax(s, count, 1);
		for (int i = round_to_lanes(count); i < columns; i++)
			s[i] = 0;
	}
}

/* scores = scale * q k^T, for rows begin .. begin + rows - 1 of q */
static void multiply_scores(const struct head *head, int begin, int rows)
{
	matmul(&(struct matmul){
		.transpose_b = true, .m = rows, .n = begin + rows,
		.k = head->size, .alpha = head->scale,
		.a = head->q + (size_t)begin * head->stride,
		.lda = head->stride, .b = head->k, .ldb = head->stride,
		.c = head->scores, .ldc = get_score_stride(head->context) });
}

static void attend_head(const struct head *head, float *out, float *lse)
{
	int stride = get_score_stride(head->context);

	for (int begin = 0; begin < head->context; begin += matmul_query_rows) {
		int rows = count_block_rows(head, begin), end = begin + rows;

		multiply_scores(head, begin, rows);
		softmax_rows(rows, begin, end, stride, head->scores,
			     lse + begin);
		matmul(&(struct matmul){
			.m = rows, .n = head->size, .k = end, .alpha = 1,
			.a = head->scores, .lda = stride,
			.b = head->v, .ldb = head->stride,
			.c = out + (size_t)begin * head->width,
			.ldc = head->width });
	}
}

void cpu_attention(struct device *device, const struct op_attention *op)
{
	(void)device;
	for (int i = 0; i < op->sequences * op->heads; i++) {
		struct head head = find_head(op->qkv, op->context, op->heads,
					     op->width, i, op->work);

		attend_head(&head, op->out + find_out(&head, op->heads, i),
			    op->lse + (size_t)i * op->context);
	}
}

/* delta[row] = out . dout, by row */
KERNEL static void dot_rows(int rows, int size, int stride, const float *out,
			    const float *dout, float *delta)
{
	for (int row = 0; row < rows; row++) {
		const float *a = out + (size_t)row * stride;
		const float *b = dout + (size_t)row * stride;
		float sum = 0;

#pragma omp simd reduction(+:sum)
		for (int i = 0; i < size; i++)
			sum += a[i] * b[i];
		delta[row] = sum;
	}
}

/* scores become probabilities p, dscores p * (dscores - delta). */
KERNEL static void softmax_rows_backward(int rows, int first, int columns,
					 int stride, float *scores,
					 float *dscores, const float *lse,
					 const float *delta)
{
	for (int row = 0; row < rows; row++) {
		float *s = scores + (size_t)row * stride;
		float *d = dscores + (size_t)row * stride;
		int count = first + 1 + row, whole = round_to_lanes(count);

#pragma omp simd
		for (int i = 0; i < whole; i++) {
			s[i] = vexp(s[i] - lse[row]);
			d[i] = s[i] * (d[i] - delta[row]);
		}
		for (int i = count; i < columns; i++)
			s[i] = d[i] = 0;
	}
}

static void find_dscores(const struct head *head, int begin, int rows)
{
	int stride = get_score_stride(head->context), end = begin + rows;
	size_t from = (size_t)begin * head->width;
	float delta[ATTENTION_ROWS];

	multiply_scores(head, begin, rows);
	matmul(&(struct matmul){		/* dp = dout v^T */
		.transpose_b = true, .m = rows, .n = end, .k = head->size,
		.alpha = 1, .a = head->dout + from, .lda = head->width,
		.b = head->v, .ldb = head->stride,
		.c = head->dscores, .ldc = stride });
	dot_rows(rows, head->size, head->width, head->out + from,
		 head->dout + from, delta);
	softmax_rows_backward(rows, begin, end, stride, head->scores,
			      head->dscores, head->lse + begin, delta);
}

static void find_gradients(const struct head *head, int begin, int rows)
{
	int stride = get_score_stride(head->context), end = begin + rows;
	size_t at = (size_t)begin * head->stride;
	bool add = end < head->context;

	matmul(&(struct matmul){		/* dq = scale * ds k */
		.m = rows, .n = head->size, .k = end, .alpha = head->scale,
		.a = head->dscores, .lda = stride,
		.b = head->k, .ldb = head->stride,
		.c = head->dq + at, .ldc = head->stride });
	matmul(&(struct matmul){		/* dk += scale * ds^T q */
		.transpose_a = true, .add = add, .m = end, .n = head->size,
		.k = rows, .alpha = head->scale,
		.a = head->dscores, .lda = stride,
		.b = head->q + at, .ldb = head->stride,
		.c = head->dk, .ldc = head->stride });
	matmul(&(struct matmul){		/* dv += p^T dout */
		.transpose_a = true, .add = add, .m = end, .n = head->size,
		.k = rows, .alpha = 1, .a = head->scores, .lda = stride,
		.b = head->dout + (size_t)begin * head->width,
		.ldb = head->width,
		.c = head->dv, .ldc = head->stride });
}

/* The last rows first: they write every key's gradient, the rest add. */
static void attend_head_backward(const struct head *head)
{
	int blocks = (head->context + matmul_query_rows - 1) /
		     matmul_query_rows;

	while (blocks-- > 0) {
		int begin = blocks * matmul_query_rows;
		int rows = count_block_rows(head, begin);

		find_dscores(head, begin, rows);
		find_gradients(head, begin, rows);
	}
}

void cpu_attention_backward(struct device *device,
			    const struct op_attention_backward *op)
{
	(void)device;
	for (int i = 0; i < op->sequences * op->heads; i++) {
		struct head head = find_head(op->qkv, op->context, op->heads,
					     op->width, i, op->work);
		size_t at = find_out(&head, op->heads, i);

		head.out = op->out + at;
		head.dout = op->dout + at;
		head.lse = op->lse + (size_t)i * op->context;
		head.dq = op->dqkv + (head.q - op->qkv);
		head.dk = head.dq + op->width;
		head.dv = head.dk + op->width;
		head.dscores = head.scores + (size_t)ATTENTION_ROWS *
			       get_score_stride(op->context);
		attend_head_backward(&head);
	}
}
