/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Causal attention as by Dao et al. 2022 (FlashAttention): the scores of a few
 * query rows of one head at a time. The backward pass computes them again from
 * the log of the sum of their exponentials.
 */
#include <math.h>

#include "cpu/cpu.h"
#include "cpu/value.h"

/* Numbers of keys that differ, at most, in products of 16 bit */
enum { EXTENTS = 16 };

/*
 * One head of one sequence; rows of q, k, v and their gradients are stride
 * apart, those of out and dout width. Scores and the sums dk and dv are of
 * fp32; in fp32 the probabilities p and the gradients ds lie on the scores, and
 * dk and dv where they are wanted.
 */
struct head {
	struct device *device;
	int context, size, stride, width;
	float engine_scale;		/* of scores, in products of fp32 */
	float kernel_scale;		/* the same in 16 bit, after them */
	const void *q, *k, *v;
	float *scores;			/* of a block of query rows */
	void *p;
	const void *out, *dout;		/* from here on backward's */
	const float *lse;
	void *dq, *ds;
	float *dscores, *dk, *dv;
	int sum_stride;			/* of dk and dv */
};

/* Values from row to row of scores: whole vectors, and no power of two. */
static int get_score_stride(int context)
{
	return round_to_lanes(context) + LANES;
}

static size_t count_scores(int context)
{
	return (size_t)ATTENTION_ROWS * get_score_stride(context);
}

size_t cpu_count_attention_work(const struct device_shape *shape)
{
	size_t scores = 2 * count_scores(shape->context);
	size_t sums = 2 * (size_t)shape->context *
		      (shape->width / shape->heads);

	if (shape->type == DEVICE_FP32)
		return scores * sizeof(float);
	return (scores + sums) * sizeof(float) +
	       scores * device_type_bytes(shape->type);
}

/* Many rows suit the engine; few rows compute less that is masked. */
static int count_block_rows(const struct head *head, int begin)
{
	int left = head->context - begin;

	return left < matmul_query_rows ? left : matmul_query_rows;
}

/*
 * How many keys the rows before `end` are multiplied with. In 16 bit they have
 * few different values: the engine keeps something for each.
 */
static int count_keys(const struct head *head, int end)
{
	int step = (head->context + EXTENTS - 1) / EXTENTS;
	int keys = (end + step - 1) / step * step;

	if (head->device->type == DEVICE_FP32)
		return end;
	return keys < head->context ? keys : head->context;
}

/* Sets where the parts of the workspace begin; the ones of 16 bit come last. */
static void divide_work(struct head *head, void *work)
{
	size_t scores = count_scores(head->context);
	size_t sums = (size_t)head->context * head->size;

	head->p = head->scores = work;
	head->ds = head->dscores = head->scores + scores;
	if (head->device->type == DEVICE_FP32)
		return;
	head->dk = head->dscores + scores;
	head->dv = head->dk + sums;
	head->sum_stride = head->size;
	head->p = head->dv + sums;
	head->ds = value_at(head->device->type, head->p, scores);
}

/* Returns head number i: what all heads have in common, and where it begins. */
static struct head find_head(struct device *device, const void *qkv,
			     int context, int heads, int width, int i,
			     void *work)
{
	enum device_type type = device->type;
	int size = width / heads, stride = 3 * width;
	float scale = 1 / sqrtf((float)size);
	size_t begin = (size_t)(i / heads) * context * stride +
		       (size_t)(i % heads * size);
	struct head head = {
		.device = device, .context = context, .size = size,
		.stride = stride, .width = width,
		.engine_scale = type == DEVICE_FP32 ? scale : 1,
		.kernel_scale = type == DEVICE_FP32 ? 1 : scale,
		.q = value_at(type, qkv, begin)
	};

	head.k = value_at(type, head.q, width);
	head.v = value_at(type, head.k, width);
	divide_work(&head, work);
	return head;
}

/* Returns where head number i begins in out. */
static size_t find_out(const struct head *head, int heads, int i)
{
	return (size_t)(i / heads) * head->context * head->width +
	       (size_t)(i % heads * head->size);
}

INLINE void scale_row(int count, float scale, float *s)
{
#pragma omp simd
	for (int i = 0; i < count; i++)
		s[i] *= scale;
}

INLINE void softmax_row(enum device_type type, int count, int columns,
			float scale, float *s, void *p, float *lse)
{
	int whole = round_to_lanes(count);

	if (type != DEVICE_FP32)
		scale_row(whole, scale, s);
	*lse = (float)vsoftmax(s, count, 1);
	if (type != DEVICE_FP32)
		round_row(type, s, whole, p);
	for (int i = whole; i < columns; i++)
		save(type, p, i, 0);
}

/*
 * Rows of scores become probabilities; row i has first + 1 + i of them, and
 * then zeros up to columns.
 */
KERNEL static void softmax_rows(enum device_type type, int rows, int first,
				int columns, int stride, float scale,
				float *scores, void *p, float *lse)
{
	for (int row = 0; row < rows; row++) {
		size_t at = (size_t)row * stride;

		FOR_TYPE(type, softmax_row(T, first + 1 + row, columns, scale,
					   scores + at, value_at(T, p, at),
					   lse + row));
	}
}

/* scores = scale * q k^T, for rows begin .. begin + rows - 1 of q */
static void multiply_scores(const struct head *head, int begin, int rows,
			    int keys)
{
	enum device_type type = head->device->type;

	cpu_multiply(head->device, &(struct matmul){
		.transpose_b = true, .m = rows, .n = keys, .k = head->size,
		.alpha = head->engine_scale,
		.a = value_at(type, head->q, (size_t)begin * head->stride),
		.lda = head->stride, .b = head->k, .ldb = head->stride,
		.c = head->scores, .ldc = get_score_stride(head->context) });
}

static void attend_head(const struct head *head, void *out, float *lse)
{
	enum device_type type = head->device->type;
	int stride = get_score_stride(head->context);

	for (int begin = 0; begin < head->context; begin += matmul_query_rows) {
		int rows = count_block_rows(head, begin);
		int keys = count_keys(head, begin + rows);

		multiply_scores(head, begin, rows, keys);
		softmax_rows(type, rows, begin, keys, stride,
			     head->kernel_scale, head->scores, head->p,
			     lse + begin);
		cpu_multiply(head->device, &(struct matmul){
			.rounded = type != DEVICE_FP32,
			.m = rows, .n = head->size, .k = keys, .alpha = 1,
			.a = head->p, .lda = stride,
			.b = head->v, .ldb = head->stride,
			.c = value_at(type, out, (size_t)begin * head->width),
			.ldc = head->width });
	}
}

void cpu_attention(struct device *device, const struct op_attention *op)
{
	for (int i = 0; i < op->sequences * op->heads; i++) {
		struct head head = find_head(device, op->qkv, op->context,
					     op->heads, op->width, i, op->work);

		attend_head(&head, value_at(device->type, op->out,
					    find_out(&head, op->heads, i)),
			    op->lse + (size_t)i * op->context);
	}
}

INLINE float dot_row(enum device_type type, int size, const void *a,
		     const void *b)
{
	float sum = 0;

#pragma omp simd reduction(+:sum)
	for (int i = 0; i < size; i++)
		sum += load(type, a, i) * load(type, b, i);
	return sum;
}

/* delta[row] = out . dout, by row */
KERNEL static void dot_rows(enum device_type type, int rows, int size,
			    int stride, const void *out, const void *dout,
			    float *delta)
{
	for (int row = 0; row < rows; row++) {
		size_t at = (size_t)row * stride;

		FOR_TYPE(type, delta[row] = dot_row(T, size,
						    value_at(T, out, at),
						    value_at(T, dout, at)));
	}
}

/* p is s's memory in fp32, and ds is d's; the scale is then 1. */
INLINE void softmax_row_backward(enum device_type type, int count, int columns,
				 float scale, float *s, float *d, float lse,
				 float delta, void *p, void *ds)
{
	int whole = round_to_lanes(count);

#pragma omp simd
	for (int i = 0; i < whole; i++) {
		float likely = vexp(type == DEVICE_FP32 ? s[i] - lse :
				    s[i] * scale - lse);
		float slope = likely * (d[i] - delta);

		save(type, p, i, likely);
		save(type, ds, i, type == DEVICE_FP32 ? slope : slope * scale);
	}
	for (int i = count; i < columns; i++) {
		save(type, p, i, 0);
		save(type, ds, i, 0);
	}
}

/*
 * Computes p, the probabilities of the scores, and ds = p * (dscores - delta)
 * times kernel_scale.
 */
KERNEL static void softmax_rows_backward(const struct head *head,
					 enum device_type type, int rows,
					 int first, int columns, int stride,
					 const float *delta)
{
	for (int row = 0; row < rows; row++) {
		size_t at = (size_t)row * stride;

		FOR_TYPE(type, softmax_row_backward(
			T, first + 1 + row, columns, head->kernel_scale,
			head->scores + at, head->dscores + at,
			head->lse[first + row], delta[row],
			value_at(T, head->p, at), value_at(T, head->ds, at)));
	}
}

static void find_dscores(const struct head *head, int begin, int rows,
			 int keys)
{
	enum device_type type = head->device->type;
	int stride = get_score_stride(head->context);
	size_t from = (size_t)begin * head->width;
	const void *dout = value_at(type, head->dout, from);
	float delta[ATTENTION_ROWS];

	multiply_scores(head, begin, rows, keys);
	cpu_multiply(head->device, &(struct matmul){	/* dp = dout v^T */
		.transpose_b = true, .m = rows, .n = keys, .k = head->size,
		.alpha = 1, .a = dout, .lda = head->width,
		.b = head->v, .ldb = head->stride,
		.c = head->dscores, .ldc = stride });
	dot_rows(type, rows, head->size, head->width,
		 value_at(type, head->out, from), dout, delta);
	softmax_rows_backward(head, type, rows, begin, keys, stride, delta);
}

static void find_gradients(const struct head *head, int begin, int rows,
			   int keys)
{
	enum device_type type = head->device->type;
	int stride = get_score_stride(head->context);
	size_t at = (size_t)begin * head->stride;
	bool add = begin + rows < head->context;

	cpu_multiply(head->device, &(struct matmul){	/* dq = scale * ds k */
		.rounded = type != DEVICE_FP32,
		.m = rows, .n = head->size, .k = keys,
		.alpha = head->engine_scale, .a = head->ds, .lda = stride,
		.b = head->k, .ldb = head->stride,
		.c = value_at(type, head->dq, at), .ldc = head->stride });
	cpu_multiply(head->device, &(struct matmul){	/* dk += scale ds^T q */
		.transpose_a = true, .add = add, .m = keys, .n = head->size,
		.k = rows, .alpha = head->engine_scale,
		.a = head->ds, .lda = stride,
		.b = value_at(type, head->q, at), .ldb = head->stride,
		.c = head->dk, .ldc = head->sum_stride });
	cpu_multiply(head->device, &(struct matmul){	/* dv += p^T dout */
		.transpose_a = true, .add = add, .m = keys, .n = head->size,
		.k = rows, .alpha = 1, .a = head->p, .lda = stride,
		.b = value_at(type, head->dout, (size_t)begin * head->width),
		.ldb = head->width,
		.c = head->dv, .ldc = head->sum_stride });
}

/* Begins with the last rows: they write every key's gradient, the rest add. */
static void attend_head_backward(const struct head *head)
{
	int blocks = (head->context + matmul_query_rows - 1) /
		     matmul_query_rows;

	while (blocks-- > 0) {
		int begin = blocks * matmul_query_rows;
		int rows = count_block_rows(head, begin);
		int keys = count_keys(head, begin + rows);

		find_dscores(head, begin, rows, keys);
		find_gradients(head, begin, rows, keys);
	}
}

/* Runs one head. In 16 bit dk and dv are sums in the workspace at first. */
static void run_head_backward(struct head *head, void *dq)
{
	enum device_type type = head->device->type;
	void *dk = value_at(type, dq, head->width);
	void *dv = value_at(type, dk, head->width);

	head->dq = dq;
	if (type == DEVICE_FP32) {
		head->dk = dk;
		head->dv = dv;
		head->sum_stride = head->stride;
	}
	attend_head_backward(head);
	if (type == DEVICE_FP32)
		return;
	for (int row = 0; row < head->context; row++) {
		size_t from = (size_t)row * head->size;
		size_t to = (size_t)row * head->stride;

		half_round(type, head->dk + from, value_at(type, dk, to),
			   head->size);
		half_round(type, head->dv + from, value_at(type, dv, to),
			   head->size);
	}
}

void cpu_attention_backward(struct device *device,
			    const struct op_attention_backward *op)
{
	enum device_type type = device->type;

	for (int i = 0; i < op->sequences * op->heads; i++) {
		struct head head = find_head(device, op->qkv, op->context,
					     op->heads, op->width, i, op->work);
		size_t at = find_out(&head, op->heads, i);
		size_t q = (size_t)((const char *)head.q -
				    (const char *)op->qkv);

		head.out = value_at(type, op->out, at);
		head.dout = value_at(type, op->dout, at);
		head.lse = op->lse + (size_t)i * op->context;
		run_head_backward(&head, (char *)op->dqkv + q);
	}
}
