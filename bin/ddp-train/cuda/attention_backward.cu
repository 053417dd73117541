/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backward pass of causal attention of 16-bit values, as by Dao 2023
 * (FlashAttention-2), but without atomics: with p the probabilities, and
 * ds = p * (dout v^T - delta), where delta = rowsum(dout * out),
 *
 *	dv = p^T dout, dk = ds^T q * scale, dq = ds k * scale
 *
 * One launch sums up delta. One has a block for each tile of keys, which goes
 * over the queries, and one a block for each tile of queries, which goes over
 * the keys: scores are computed twice, 7 products of tiles instead of 5. In
 * return each sum is formed in one order, and nothing of fp32 is written and
 * read again but delta.
 *
 * In both a block has its own rows, of two tensors, for as long as it lives:
 * k and v, or q and dout. The others pass by in steps, in two rooms of shared
 * memory, of which one is filled while the other is worked on.
 */
#include "cuda/attention.h"

enum { THREADS = 128, WARPS = THREADS / 32 };

/* A warp has 16 M of its block's OWN rows; STEP rows pass by at a time. */
template <int D> struct backward_tile {
	enum { M = D > 64 ? 1 : 2, OWN = 16 * M * WARPS, STEP = 32,
	       OWN_ROOM = 2 * OWN * ROW<D>, ROOM = 2 * STEP * ROW<D> };
};

/* delta; D / 8 threads a row of a head, 8 values each */
template <class T, int D>
__global__ void __launch_bounds__(THREADS)
delta_kernel(op_attention_backward op, size_t count)
{
	size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	size_t row = i * 8 / op.width;
	int column = (int)(i * 8 % op.width);
	size_t head = row / op.context * op.heads + column / D;
	float sum = 0;

	if (i < count) {
		pack<T, 8> x = load_pack<8>((const T *)op.out + 8 * i);
		pack<T, 8> y = load_pack<8>((const T *)op.dout + 8 * i);

#pragma unroll
		for (int j = 0; j < 8; j++)
			sum += widen(x.at[j]) * widen(y.at[j]);
	}
#pragma unroll
	for (int offset = D / 16; offset > 0; offset >>= 1)
		sum += __shfl_xor_sync(~0u, sum, offset);
	if (i < count && column % D == 0)
		((float *)op.work)[head * op.context + row % op.context] = sum;
}

/* Where what a block reads of its head begins. */
template <class T> struct backward_head {
	const T *q, *k, *v, *dout;
	const float *lse, *delta;
	T *dq;
	size_t stride;

	__device__ backward_head(const op_attention_backward &op,
				 const attention_task &task)
	{
		size_t rows = (size_t)task.head * op.context;
		size_t at = task.begin * 3 * op.width + task.column;

		stride = 3 * (size_t)op.width;
		q = (const T *)op.qkv + at;
		k = q + op.width;
		v = k + op.width;
		dq = (T *)op.dqkv + at;
		dout = (const T *)op.dout + task.begin * op.width +
		       task.column;
		lse = op.lse + rows;
		delta = (const float *)op.work + rows;
	}
};

template <int M, int N>
__device__ inline void set_all(float (&c)[M][N], float x)
{
#pragma unroll
	for (int i = 0; i < M * N; i++)
		c[i / N][i % N] = x;
}

/* Of a query: its lse in powers of 2, and its delta. */
struct query_terms {
	float lse, delta;
};

/* Scores s become probabilities, and their gradients dp become ds. */
__device__ inline void find_gradient(float &s, float &dp, float scale,
				     const query_terms &query)
{
	s = exp2_approx(s * scale - query.lse);
	dp = s * (dp - query.delta);
}

/* The terms of the steps' queries: thread i < 2 STEP has one number. */
template <int STEP>
__device__ inline float read_terms(const float *lse, const float *delta,
				   int first, int end)
{
	int row = first + (int)threadIdx.x % STEP;

	if (threadIdx.x >= 2 * STEP || row >= end)
		return 0;
	return threadIdx.x < STEP ? lse[row] * LOG2E : delta[row];
}

/*
 * What STEP queries add to the gradients of a warp's keys: the products are
 * transposed, so that rows are keys.
 */
template <class T, int D, int M, int STEP>
__device__ inline void add_queries(float (&dk)[M][D / 8][4],
				   float (&dv)[M][D / 8][4], const T *k,
				   const T *v, const T *q, const T *dout,
				   const float *terms, int key, int first)
{
	int lane = threadIdx.x % 32;
	float s[M][STEP / 8][4], ds[M][STEP / 8][4];
	uint32_t left[STEP / 16][M][4];

	multiply_tiles<D, M, STEP>(s, k, q);
	multiply_tiles<D, M, STEP>(ds, v, dout);
	if (key + 16 * M - 1 > first)
		hide_later<false>(s, key + lane / 4, first + lane % 4 * 2);
#pragma unroll
	for (int n = 0; n < STEP / 8; n++)
#pragma unroll
		for (int j = 0; j < 2; j++) {
			const float *at = terms + 8 * n + lane % 4 * 2 + j;
			query_terms query = { at[0], at[STEP] };

#pragma unroll
			for (int i = 0; i < 2 * M; i++)
				find_gradient(s[i / 2][n][i % 2 * 2 + j],
					      ds[i / 2][n][i % 2 * 2 + j],
					      LOG2E / sqrtf((float)D), query);
		}
	pack_left<M, STEP>(left, s, T());
	multiply_columns<D, M, STEP>(dv, left, dout);
	pack_left<M, STEP>(left, ds, T());
	multiply_columns<D, M, STEP>(dk, left, q);
}

template <class T, int D>
__global__ void __launch_bounds__(THREADS, 2)
dkv_kernel(op_attention_backward op, int tiles)
{
	typedef backward_tile<D> tile;
	constexpr int M = tile::M, OWN = tile::OWN, STEP = tile::STEP;
	attention_task task = find_task<D>(op.context, op.heads, tiles);
	backward_head<T> head(op, task);
	int begin = task.tile * OWN, own = threadIdx.x / 32 * 16 * M;
	T *k = (T *)dynamic_shared(), *v = k + OWN * ROW<D>;
	T *rooms = k + tile::OWN_ROOM;
	float *terms = (float *)(rooms + 2 * tile::ROOM);
	float dk[M][D / 8][4] = {}, dv[M][D / 8][4] = {}, next;
	float factor[M][2];

	auto fetch_queries = [&](int query) {
		T *to = rooms + query / STEP % 2 * tile::ROOM;

		fetch_rows<D, STEP, THREADS>(to, head.q, head.stride, query,
					     op.context);
		fetch_rows<D, STEP, THREADS>(to + STEP * ROW<D>, head.dout,
					     op.width, query, op.context);
		cp_async_commit();
		next = read_terms<STEP>(head.lse, head.delta, query,
					op.context);
	};
	auto keep_terms = [&](int query) {
		if (threadIdx.x < 2 * STEP)
			terms[query / STEP % 2 * 2 * STEP + threadIdx.x] = next;
	};

	fetch_rows<D, OWN, THREADS>(k, head.k, head.stride, begin, op.context);
	fetch_rows<D, OWN, THREADS>(v, head.v, head.stride, begin, op.context);
	fetch_queries(begin);
	keep_terms(begin);
	for (int query = begin; query < op.context; query += STEP) {
		const T *q = rooms + query / STEP % 2 * tile::ROOM;
		bool more = query + STEP < op.context;

		cp_async_wait<0>();
		__syncthreads();
		if (more)
			fetch_queries(query + STEP);
		if (begin + own < query + STEP)
			add_queries<T, D, M, STEP>(dk, dv, k + own * ROW<D>,
				v + own * ROW<D>, q, q + STEP * ROW<D>,
				terms + query / STEP % 2 * 2 * STEP,
				begin + own, query);
		if (more)
			keep_terms(query + STEP);
	}
	__syncthreads();
	set_all(factor, 1 / sqrtf((float)D));
	store_rows<D, M>(k + own * ROW<D>, dk, factor, head.dq + op.width,
			 head.stride, begin + own, op.context);
	set_all(factor, 1);
	store_rows<D, M>(v + own * ROW<D>, dv, factor, head.dq + 2 * op.width,
			 head.stride, begin + own, op.context);
}

/* What STEP keys add to the gradient of a warp's queries. */
template <class T, int D, int M, int STEP>
__device__ inline void add_keys(float (&dq)[M][D / 8][4], const T *q,
				const T *dout, const T *k, const T *v,
				const query_terms (&terms)[M][2], int query,
				int first)
{
	int lane = threadIdx.x % 32;
	float s[M][STEP / 8][4], ds[M][STEP / 8][4];
	uint32_t left[STEP / 16][M][4];

	multiply_tiles<D, M, STEP>(s, q, k);
	multiply_tiles<D, M, STEP>(ds, dout, v);
	if (first + STEP - 1 > query)
		hide_later<true>(s, query + lane / 4, first + lane % 4 * 2);
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int i = 0; i < STEP / 2; i++)
			find_gradient(s[m][i / 4][i % 4], ds[m][i / 4][i % 4],
				      LOG2E / sqrtf((float)D),
				      terms[m][i % 4 / 2]);
	pack_left<M, STEP>(left, ds, T());
	multiply_columns<D, M, STEP>(dq, left, k);
}

template <class T, int D>
__global__ void __launch_bounds__(THREADS, 2)
dq_kernel(op_attention_backward op, int tiles)
{
	typedef backward_tile<D> tile;
	constexpr int M = tile::M, OWN = tile::OWN, STEP = tile::STEP;
	attention_task task = find_task<D>(op.context, op.heads, tiles);
	backward_head<T> head(op, task);
	int begin = (tiles - 1 - task.tile) * OWN;
	int own = threadIdx.x / 32 * 16 * M, query = begin + own;
	int end = min(begin + OWN, op.context);
	T *q = (T *)dynamic_shared(), *dout = q + OWN * ROW<D>;
	T *rooms = q + tile::OWN_ROOM;
	float dq[M][D / 8][4] = {}, factor[M][2];
	query_terms terms[M][2];

	auto fetch_keys = [&](int key) {
		T *to = rooms + key / STEP % 2 * tile::ROOM;

		fetch_rows<D, STEP, THREADS>(to, head.k, head.stride, key,
					     op.context);
		fetch_rows<D, STEP, THREADS>(to + STEP * ROW<D>, head.v,
					     head.stride, key, op.context);
		cp_async_commit();
	};

	fetch_rows<D, OWN, THREADS>(q, head.q, head.stride, begin, op.context);
	fetch_rows<D, OWN, THREADS>(dout, head.dout, op.width, begin,
				    op.context);
	fetch_keys(0);
#pragma unroll
	for (int i = 0; i < 2 * M; i++) {
		int row = query + threadIdx.x % 32 / 4 + 8 * i;

		terms[i / 2][i % 2] = row < op.context ?
			query_terms{ head.lse[row] * LOG2E, head.delta[row] } :
			query_terms{ 0, 0 };
	}
	for (int key = 0; key < end; key += STEP) {
		const T *k = rooms + key / STEP % 2 * tile::ROOM;

		cp_async_wait<0>();
		__syncthreads();
		if (key + STEP < end)
			fetch_keys(key + STEP);
		if (key < query + 16 * M)
			add_keys<T, D, M, STEP>(dq, q + own * ROW<D>,
						dout + own * ROW<D>, k,
						k + STEP * ROW<D>, terms,
						query, key);
	}
	__syncthreads();
	set_all(factor, 1 / sqrtf((float)D));
	store_rows<D, M>(q + own * ROW<D>, dq, factor, head.dq, head.stride,
			 query, op.context);
}

template <class T, int D>
static cudaError_t backward(cudaStream_t stream,
			    const op_attention_backward *op)
{
	typedef backward_tile<D> tile;
	size_t chunks = (size_t)op->sequences * op->context * op->width / 8;
	int tiles = (op->context + tile::OWN - 1) / tile::OWN;
	size_t blocks = (size_t)tiles * op->sequences * op->heads;
	size_t shared = (tile::OWN_ROOM + 2 * tile::ROOM) * sizeof(T);
	cudaError_t error = launch(stream,
				   (unsigned)((chunks + THREADS - 1) / THREADS),
				   THREADS, 0, delta_kernel<T, D>, *op, chunks);

	if (error)
		return error;
	error = launch_attention(stream, dkv_kernel<T, D>, blocks, THREADS,
				 shared + 4 * tile::STEP * sizeof(float), *op,
				 tiles);
	if (error)
		return error;
	return launch_attention(stream, dq_kernel<T, D>, blocks, THREADS,
				shared, *op, tiles);
}

template <class T>
static cudaError_t backward_of(cudaStream_t stream,
			       const op_attention_backward *op)
{
	switch (op->width / op->heads) {
	case 16: return backward<T, 16>(stream, op);
	case 32: return backward<T, 32>(stream, op);
	case 64: return backward<T, 64>(stream, op);
	default: return backward<T, 128>(stream, op);
	}
}

void cuda_attention_backward(struct device *device,
			     const struct op_attention_backward *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	cudaError_t error;

	if (!attention_is_fast(device->type, op->width / op->heads))
		error = attention_backward_plain(stream, device->type, op);
	else if (device->type == DEVICE_BF16)
		error = backward_of<__nv_bfloat16>(stream, op);
	else
		error = backward_of<__half>(stream, op);
	cuda_check(device, error, "attention's backward pass");
}

size_t cuda_count_attention_work(const struct device_shape *shape)
{
	return (size_t)shape->rows * shape->heads * sizeof(float);
}
