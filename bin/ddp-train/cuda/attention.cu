/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Causal attention of 16-bit values as by Dao et al. 2022 and Dao 2023
 * (FlashAttention): scores never leave registers.
 */
#include "cuda/attention.h"

/*
 * A block has 128 queries of one head, and goes over the keys, 64 at a time.
 * Two fragments of 16 queries a warp halve what is read of shared memory for
 * each product; heads of 128 values leave registers for one.
 */
template <int D> struct forward_tile {
	enum { KEYS = 64, M = D > 64 ? 1 : 2, QUERIES = 64 * M,
	       THREADS = 128, BLOCKS = D > 16 ? 2 : 3 };
};

/* A lane's part of the softmax of its rows; scores are not yet scaled. */
template <int M> struct softmax {
	float top[M][2];		/* the largest score */
	float sum[M][2];		/* exp(score - top), of its columns */
};

template <int M> __device__ inline void begin_softmax(softmax<M> &state)
{
#pragma unroll
	for (int i = 0; i < 2 * M; i++) {
		state.top[i / 2][i % 2] = -INFINITY;
		state.sum[i / 2][i % 2] = 0;
	}
}

/* Over the four lanes that share a row. */
__device__ inline float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
	return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ inline float quad_sum(float x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}

/*
 * Scores become exp(score - top). Where top grows, what has been summed is
 * scaled down. Each row's first tile has a key, so that top is finite.
 */
template <int M, int N, int COLUMNS>
__device__ inline void add_scores(softmax<M> &state, float (&s)[M][N][4],
				  float (&out)[M][COLUMNS][4], float scale)
{
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float top = state.top[m][h], factor, shift;
			float sum = 0;

#pragma unroll
			for (int n = 0; n < N; n++)
				top = fmaxf(top, fmaxf(s[m][n][2 * h],
						       s[m][n][2 * h + 1]));
			top = quad_max(top);
			shift = top * scale;
			factor = exp2_approx((state.top[m][h] - top) * scale);
			state.top[m][h] = top;
#pragma unroll
			for (int n = 0; n < 2 * N; n++) {
				float &x = s[m][n / 2][2 * h + n % 2];

				x = exp2_approx(x * scale - shift);
				sum += x;
			}
			state.sum[m][h] = state.sum[m][h] * factor + sum;
#pragma unroll
			for (int n = 0; n < 2 * COLUMNS; n++)
				out[m][n / 2][2 * h + n % 2] *= factor;
		}
}

/* One tile of keys, the first of which is `first`, for a warp's queries. */
template <class T, int D, int M, int N>
__device__ inline void attend(softmax<M> &state, float (&out)[M][D / 8][4],
			      const uint32_t (&q)[D / 16][M][4], const T *k,
			      const T *v, int query, int first)
{
	int lane = threadIdx.x % 32;
	float s[M][N / 8][4];
	uint32_t p[N / 16][M][4];

	multiply_held<D, M, N>(s, q, k);
	if (first + N - 1 > query)
		hide_later<true>(s, query + lane / 4, first + lane % 4 * 2);
	add_scores(state, s, out, LOG2E / sqrtf((float)D));
	pack_left<M, N>(p, s, T());
	multiply_columns<D, M, N>(out, p, v);
}

/* Stores the block's results: out = sums / sum, and lse = top + log(sum). */
template <class T, int D, int M>
__device__ inline void finish(const op_attention &op,
			      const attention_task &task, softmax<M> &state,
			      const float (&out)[M][D / 8][4], T *own,
			      int query)
{
	int lane = threadIdx.x % 32;
	float scale = 1 / sqrtf((float)D), factor[M][2];

#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			int row = query + 16 * m + lane / 4 + 8 * h;
			float sum = quad_sum(state.sum[m][h]);

			factor[m][h] = 1 / sum;
			if (lane % 4 == 0 && row < op.context)
				op.lse[(size_t)task.head * op.context + row] =
					state.top[m][h] * scale + logf(sum);
		}
	store_rows<D, M>(own, out, factor, (T *)op.out +
			 task.begin * op.width + task.column, op.width, query,
			 op.context);
}

/*
 * The queries come by way of the keys' second room, and then stay in
 * registers. Blocks with many keys begin first.
 */
template <class T, int D>
__global__ void __launch_bounds__(forward_tile<D>::THREADS,
				  forward_tile<D>::BLOCKS)
attention_kernel(op_attention op)
{
	typedef forward_tile<D> tile;
	typedef attention_stream<T, D, tile::KEYS, tile::THREADS> stream;
	constexpr int M = tile::M, KEYS = tile::KEYS;
	attention_task task = find_task<D>(op.context, op.heads);
	int first = (int)(gridDim.x - 1 - blockIdx.x) * tile::QUERIES;
	int own = find_warp() * 16 * M, query = first + own;
	int end = min(first + tile::QUERIES, op.context);
	size_t stride = 3 * (size_t)op.width;
	const T *q = (const T *)op.qkv + task.begin * stride + task.column;
	T *room = (T *)dynamic_shared(), *second = room + stream::ROOM;
	stream keys = { room, q + op.width, q + 2 * op.width, stride, stride,
			op.context };
	uint32_t left[D / 16][M][4];
	float out[M][D / 8][4] = {};
	softmax<M> state;

	fetch_rows<D, tile::QUERIES, tile::THREADS>(second, q, stride, first,
						    op.context);
	keys.fetch(0);
	cp_async_commit();
	begin_softmax(state);
	cp_async_wait<0>();
	__syncthreads();
	load_rows<D, M>(left, second + own * ROW<D>);
	for (int key = 0; key < end; key += KEYS) {
		const T *k = keys.find_room(key);

		cp_async_wait<0>();
		__syncthreads();
		if (key + KEYS < end) {
			keys.fetch(key + KEYS);
			cp_async_commit();
		}
		if (key < query + 16 * M)
			attend<T, D, M, KEYS>(state, out, left, k,
					      k + stream::TILE, query, key);
	}
	__syncthreads();
	finish<T, D, M>(op, task, state, out, room + own * ROW<D>, query);
}

template <class T, int D>
static cudaError_t attention(cudaStream_t stream, const op_attention *op)
{
	typedef forward_tile<D> tile;
	size_t shared = 4 * tile::KEYS * ROW<D> * sizeof(T);
	int tiles = (op->context + tile::QUERIES - 1) / tile::QUERIES;

	return launch_attention(stream, attention_kernel<T, D>,
				dim3(tiles, op->heads, op->sequences),
				tile::THREADS, shared, *op);
}

template <class T>
static cudaError_t attention_of(cudaStream_t stream, const op_attention *op)
{
	switch (op->width / op->heads) {
	case 16: return attention<T, 16>(stream, op);
	case 32: return attention<T, 32>(stream, op);
	case 64: return attention<T, 64>(stream, op);
	default: return attention<T, 128>(stream, op);
	}
}

void cuda_attention(struct device *device, const struct op_attention *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	cudaError_t error;

	if (!attention_is_fast(device->type, op->sequences, op->heads,
			       op->width))
		error = attention_plain(stream, device->type, op);
	else if (device->type == DEVICE_BF16)
		error = attention_of<__nv_bfloat16>(stream, op);
	else
		error = attention_of<__half>(stream, op);
	cuda_check(device, error, "attention");
}
