/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Causal attention of any type, for heads of up to PLAIN_SIZE values: fp32,
 * and what the kernels for tensor cores lack. A warp has one row. It goes over
 * the rows that this one meets, 32 at a time: for the scores a lane has one of
 * them, and for the sums every 32nd value of a row.
 */
#include "cuda/attention.h"

enum { WARPS = 4, PARTS = PLAIN_SIZE / 32 };

/* A row of the warp: which head of which sequence it is of, and where. */
struct plain_task {
	int row, head;		/* head: heads * sequence + head */
	size_t begin;		/* the sequence's first row */
	int column, size;	/* the head's in a row of out */
};

/* Sets *task to this warp's row; returns false if it has none. */
__device__ inline bool find_row(int sequences, int context, int heads,
				int width, plain_task *task)
{
	size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;

	task->head = (int)(i / context);
	task->row = (int)(i % context);
	task->begin = (size_t)(task->head / heads) * context;
	task->size = width / heads;
	task->column = task->head % heads * task->size;
	return task->head < sequences * heads;
}

/* Keep a row where all lanes of the warp can read it. */
template <class T>
__device__ inline void keep_row(float *row, const T *from, int size)
{
	for (int i = threadIdx.x % 32; i < size; i += 32)
		row[i] = widen(from[i]);
	__syncwarp();
}

/* N values of `other` are read at once. */
template <int N, class T>
__device__ inline float multiply(const float *row, const T *other, int size)
{
	float sum = 0;

#pragma unroll 2
	for (int i = 0; i < size; i += N) {
		pack<T, N> values = load_pack<N>(other + i);

#pragma unroll
		for (int j = 0; j < N; j++)
			sum += row[i + j] * widen(values.at[j]);
	}
	return sum;
}

/* sum += weight of lane j * row j, for the first `rows` rows of 32 */
template <class T>
__device__ inline void add_rows(float (&sum)[PARTS], float weight, int rows,
				const T *from, size_t stride, int size)
{
	int lane = threadIdx.x % 32;

	for (int j = 0; j < rows; j++, from += stride) {
		float factor = __shfl_sync(~0u, weight, j);

#pragma unroll
		for (int i = 0; i < PARTS; i++)
			if (lane + 32 * i < size)
				sum[i] += factor * widen(from[lane + 32 * i]);
	}
}

template <class T>
__device__ inline void write_row(T *to, const float (&sum)[PARTS],
				 float factor, int size)
{
	int lane = threadIdx.x % 32;

#pragma unroll
	for (int i = 0; i < PARTS; i++)
		if (lane + 32 * i < size)
			to[lane + 32 * i] = narrow<T>(sum[i] * factor);
}

/* The softmax of what a row has met so far: top is the largest score. */
struct plain_softmax {
	float top, sum;
};

/* exp(score - top), for a lane's score; *factor is for earlier sums. */
__device__ inline float add_score(plain_softmax *state, float score,
				  float *factor)
{
	float top = fmaxf(state->top, warp_max(score)), p = expf(score - top);

	*factor = expf(state->top - top);
	state->sum = state->sum * *factor + p;
	state->top = top;
	return p;
}

template <class T, int N>
__global__ void __launch_bounds__(32 * WARPS, 4)
plain_kernel(op_attention op)
{
	float *row = (float *)dynamic_shared() + threadIdx.x / 32 * PLAIN_SIZE;
	int lane = threadIdx.x % 32;
	plain_softmax state = { -INFINITY, 0 };
	float sum[PARTS] = {};
	size_t stride = 3 * (size_t)op.width;
	plain_task task;

	if (!find_row(op.sequences, op.context, op.heads, op.width, &task))
		return;
	const T *q = (const T *)op.qkv + task.begin * stride + task.column;
	const T *k = q + op.width, *v = k + op.width;

	keep_row(row, q + task.row * stride, task.size);
	for (int key = 0; key <= task.row; key += 32) {
		bool live = key + lane <= task.row;
		float score = !live ? -INFINITY :
			multiply<N>(row, k + (key + lane) * stride, task.size) /
			sqrtf((float)task.size);
		float factor, p = add_score(&state, score, &factor);

#pragma unroll
		for (int i = 0; i < PARTS; i++)
			sum[i] *= factor;
		add_rows(sum, p, min(32, task.row + 1 - key), v + key * stride,
			 stride, task.size);
	}
	state.sum = warp_sum(state.sum);
	write_row((T *)op.out + (task.begin + task.row) * op.width +
		  task.column, sum, 1 / state.sum, task.size);
	if (lane == 0)
		op.lse[(size_t)task.head * op.context + task.row] =
			state.top + logf(state.sum);
}

/* The tensors of one head of a sequence, for the backward pass. */
template <class T> struct plain_head {
	const T *q, *k, *v, *dout;
	const float *lse, *delta;
	size_t stride, width;
	float scale;

	__device__ plain_head(const op_attention_backward &op,
			      const plain_task &task)
	{
		size_t rows = (size_t)task.head * op.context;

		width = op.width;
		stride = 3 * width;
		q = (const T *)op.qkv + task.begin * stride + task.column;
		k = q + width;
		v = k + width;
		dout = (const T *)op.dout + task.begin * width + task.column;
		lse = op.lse + rows;
		delta = (const float *)op.work + rows;
		scale = 1 / sqrtf((float)task.size);
	}
};

/* The probability for a score, and its gradient. */
struct plain_pair {
	float p, ds;
};

template <class T>
__device__ inline plain_pair find_gradient(const plain_head<T> &head, int query,
					   float score, float dp)
{
	float p = expf(score * head.scale - head.lse[query]);

	return { p, p * (dp - head.delta[query]) };
}

/* delta = sum of dout * out, of each row of each head */
template <class T>
__global__ void __launch_bounds__(32 * WARPS, 4)
plain_delta_kernel(op_attention_backward op)
{
	float sum = 0;
	plain_task task;

	if (!find_row(op.sequences, op.context, op.heads, op.width, &task))
		return;
	size_t at = (task.begin + task.row) * op.width + task.column;

	for (int i = threadIdx.x % 32; i < task.size; i += 32)
		sum += widen(((const T *)op.out)[at + i]) *
		       widen(((const T *)op.dout)[at + i]);
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		((float *)op.work)[(size_t)task.head * op.context + task.row] =
			sum;
}

template <class T, int N>
__global__ void __launch_bounds__(32 * WARPS, 4)
plain_dq_kernel(op_attention_backward op)
{
	float *q = (float *)dynamic_shared() +
		   threadIdx.x / 32 * 2 * PLAIN_SIZE;
	float *dout = q + PLAIN_SIZE, dq[PARTS] = {};
	int lane = threadIdx.x % 32;
	plain_task task;

	if (!find_row(op.sequences, op.context, op.heads, op.width, &task))
		return;
	plain_head<T> head(op, task);

	keep_row(q, head.q + task.row * head.stride, task.size);
	keep_row(dout, head.dout + task.row * head.width, task.size);
	for (int key = 0; key <= task.row; key += 32) {
		size_t at = (key + lane) * head.stride;
		plain_pair pair = { 0, 0 };

		if (key + lane <= task.row)
			pair = find_gradient(head, task.row,
				multiply<N>(q, head.k + at, task.size),
				multiply<N>(dout, head.v + at, task.size));
		add_rows(dq, pair.ds, min(32, task.row + 1 - key),
			 head.k + key * head.stride, head.stride, task.size);
	}
	write_row((T *)op.dqkv + (task.begin + task.row) * head.stride +
		  task.column, dq, head.scale, task.size);
}

template <class T, int N>
__global__ void __launch_bounds__(32 * WARPS, 4)
plain_dkv_kernel(op_attention_backward op)
{
	float *k = (float *)dynamic_shared() +
		   threadIdx.x / 32 * 2 * PLAIN_SIZE;
	float *v = k + PLAIN_SIZE, dk[PARTS] = {}, dv[PARTS] = {};
	int lane = threadIdx.x % 32;
	plain_task task;

	if (!find_row(op.sequences, op.context, op.heads, op.width, &task))
		return;
	plain_head<T> head(op, task);

	keep_row(k, head.k + task.row * head.stride, task.size);
	keep_row(v, head.v + task.row * head.stride, task.size);
	for (int query = task.row; query < op.context; query += 32) {
		int rows = min(32, op.context - query), mine = query + lane;
		plain_pair pair = { 0, 0 };

		if (lane < rows)
			pair = find_gradient(head, mine,
				multiply<N>(k, head.q + mine * head.stride,
					    task.size),
				multiply<N>(v, head.dout + mine * head.width,
					    task.size));
		add_rows(dk, pair.ds, rows, head.q + query * head.stride,
			 head.stride, task.size);
		add_rows(dv, pair.p, rows, head.dout + query * head.width,
			 head.width, task.size);
	}
	T *to = (T *)op.dqkv + (task.begin + task.row) * head.stride +
		head.width + task.column;

	write_row(to, dk, head.scale, task.size);
	write_row(to + head.width, dv, 1, task.size);
}

static unsigned count_blocks(int sequences, int context, int heads)
{
	size_t rows = (size_t)sequences * context * heads;

	return (unsigned)((rows + WARPS - 1) / WARPS);
}

/* Returns true if 16 bytes of a row can be read at once. */
template <class T> static bool is_wide(int heads, int width)
{
	return width / heads * sizeof(T) % 16 == 0;
}

template <class T>
static cudaError_t forward(cudaStream_t stream, const op_attention *op)
{
	auto kernel = is_wide<T>(op->heads, op->width) ?
		      plain_kernel<T, 16 / sizeof(T)> : plain_kernel<T, 1>;

	return launch(stream,
		      count_blocks(op->sequences, op->context, op->heads),
		      32 * WARPS, WARPS * PLAIN_SIZE * sizeof(float), kernel,
		      *op);
}

template <class T>
static cudaError_t backward(cudaStream_t stream,
			    const op_attention_backward *op)
{
	bool wide = is_wide<T>(op->heads, op->width);
	auto dq = wide ? plain_dq_kernel<T, 16 / sizeof(T)> :
			 plain_dq_kernel<T, 1>;
	auto dkv = wide ? plain_dkv_kernel<T, 16 / sizeof(T)> :
			  plain_dkv_kernel<T, 1>;
	unsigned blocks = count_blocks(op->sequences, op->context, op->heads);
	size_t shared = 2 * WARPS * PLAIN_SIZE * sizeof(float);
	cudaError_t error = launch(stream, blocks, 32 * WARPS, 0,
				   plain_delta_kernel<T>, *op);

	if (!error)
		error = launch(stream, blocks, 32 * WARPS, shared, dq, *op);
	if (!error)
		error = launch(stream, blocks, 32 * WARPS, shared, dkv, *op);
	return error;
}

cudaError_t attention_plain(cudaStream_t stream, enum device_type type,
			    const struct op_attention *op)
{
	cudaError_t error = cudaErrorInvalidValue;

	FOR_TYPE(type, error = forward<T>(stream, op));
	return error;
}

cudaError_t attention_backward_plain(cudaStream_t stream,
				     enum device_type type,
				     const struct op_attention_backward *op)
{
	cudaError_t error = cudaErrorInvalidValue;

	FOR_TYPE(type, error = backward<T>(stream, op));
	return error;
}
