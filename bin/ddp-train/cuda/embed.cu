/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of tokens and positions: a warp a row, or a part of one. */
#include "cuda/cuda.h"
#include "cuda/gpu.h"

enum {
	WARPS = 8,		/* of a block */
	BLOCKS = 4,		/* of a multiprocessor: bounds registers */
	AHEAD = 4		/* rows that are read before one is added */
};

template <class T, int N>
__global__ __launch_bounds__(32 * WARPS)
void embed_kernel(struct op_embed op)
{
	int row = blockIdx.x * WARPS + threadIdx.x / 32;
	int lane = threadIdx.x % 32;
	size_t width = (size_t)op.width;

	if (row >= op.rows)
		return;
	const T *token = (const T *)op.token_table + op.tokens[row] * width;
	const T *position = (const T *)op.position_table +
			    row % op.context * width;
	T *out = (T *)op.out + row * width;

	for (int i = lane * N; i < op.width; i += 32 * N) {
		pack<T, N> a = load_pack<N>(token + i);
		pack<T, N> b = load_pack<N>(position + i);

#pragma unroll
		for (int j = 0; j < N; j++)
			a.at[j] = narrow<T>(widen(a.at[j]) + widen(b.at[j]));
		store_pack(out + i, a);
	}
}

/*
 * Add rows of dout to sum, one after the other, in this lane's columns; the
 * number of row i is what lane i has in `row`. All lanes come here, as each has
 * a number; those that are not live read nothing.
 */
template <class T, int N>
__device__ static void add_rows(const T *dout, size_t width, int row,
				int count, bool live, float (&sum)[N])
{
	for (int begin = 0; begin < count; begin += AHEAD) {
		pack<T, N> rows[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			size_t from = (size_t)__shfl_sync(~0u, row, begin + i);

			if (live && begin + i < count)
				rows[i] = load_pack<N>(dout + from * width);
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
#pragma unroll
			for (int j = 0; j < N; j++)
				if (live && begin + i < count)
					sum[j] += widen(rows[i].at[j]);
	}
}

/* Stores sum, plus the values that are there with add, rounded once. */
template <class T, int N>
__device__ static void store_sum(T *to, const float (&sum)[N], bool add)
{
	pack<T, N> values = {};

	if (add)
		values = load_pack<N>(to);
#pragma unroll
	for (int j = 0; j < N; j++)
		values.at[j] = narrow<T>(add ? widen(values.at[j]) + sum[j] :
					 sum[j]);
	store_pack(to, values);
}

/*
 * A warp for each place of order and 32 N columns. The first place of a token
 * sums its rows; the others have nothing to do.
 */
template <class T, int N>
__global__ __launch_bounds__(32 * WARPS, BLOCKS)
void embed_tokens_kernel(struct op_embed_backward op)
{
	int begin = blockIdx.x * WARPS + threadIdx.x / 32;
	int lane = threadIdx.x % 32, count = 32;
	int column = (blockIdx.y * 32 + lane) * N;
	bool live = column < op.width;
	float sum[N] = { 0 };

	if (begin >= op.rows)
		return;
	int32_t token = op.tokens[op.order[begin]];

	if (begin > 0 && op.tokens[op.order[begin - 1]] == token)
		return;
	for (int i = begin; count == 32; i += 32) {
		int row = i + lane < op.rows ? op.order[i + lane] : -1;
		unsigned others = ~__ballot_sync(~0u, row >= 0 &&
						 op.tokens[row] == token);

		count = others ? __ffs((int)others) - 1 : 32;
		add_rows<T, N>((const T *)op.dout + column, (size_t)op.width,
			       row, count, live, sum);
	}
	if (live)
		store_sum<T, N>((T *)op.dtoken_table +
				(size_t)token * op.width + column, sum, true);
}

/* A warp for each position and 32 N columns. */
template <class T, int N>
__global__ __launch_bounds__(32 * WARPS, BLOCKS)
void embed_positions_kernel(struct op_embed_backward op)
{
	int position = blockIdx.x * WARPS + threadIdx.x / 32;
	int lane = threadIdx.x % 32;
	int column = (blockIdx.y * 32 + lane) * N;
	int rows = position < op.rows ?
		   (op.rows - position - 1) / op.context + 1 : 0;
	bool live = column < op.width;
	float sum[N] = { 0 };

	if (position >= op.context)
		return;
	for (int i = 0; i < rows; i += 32)
		add_rows<T, N>((const T *)op.dout + column, (size_t)op.width,
			       position + (i + lane) * op.context,
			       rows - i < 32 ? rows - i : 32, live, sum);
	if (live)
		store_sum<T, N>((T *)op.dposition_table +
				(size_t)position * op.width + column, sum,
				op.accumulate);
}

static unsigned count_blocks(int warps)
{
	return ((unsigned)warps + WARPS - 1) / WARPS;
}

template <class T>
static cudaError_t run(cudaStream_t stream, const struct op_embed *op)
{
	constexpr int N = 16 / sizeof(T);

	return launch(stream, count_blocks(op->rows), 32 * WARPS, 0,
		      op->width % N == 0 ? embed_kernel<T, N> :
		      embed_kernel<T, 1>, *op);
}

template <class T, int N>
static cudaError_t launch_backward(cudaStream_t stream,
				   const struct op_embed_backward *op)
{
	unsigned parts = ((unsigned)op->width + 32 * N - 1) / (32 * N);
	cudaError_t error = launch(stream,
				   dim3(count_blocks(op->rows), parts),
				   32 * WARPS, 0, embed_tokens_kernel<T, N>,
				   *op);

	return error != cudaSuccess ? error :
	       launch(stream, dim3(count_blocks(op->context), parts),
		      32 * WARPS, 0, embed_positions_kernel<T, N>, *op);
}

template <class T>
static cudaError_t run_backward(cudaStream_t stream,
				const struct op_embed_backward *op)
{
	constexpr int N = 16 / sizeof(T);

	return op->width % N == 0 ? launch_backward<T, N>(stream, op) :
	       launch_backward<T, 1>(stream, op);
}

extern "C" {

void cuda_embed(struct device *device, const struct op_embed *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	FOR_TYPE(device->type, cuda_check(device, run<T>(stream, op),
					  "embedding"));
}

void cuda_embed_backward(struct device *device,
			 const struct op_embed_backward *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	FOR_TYPE(device->type, cuda_check(device, run_backward<T>(stream, op),
					  "embedding, backward"));
}

}
