/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer norm, backward. A block goes through some of the rows, and each of its
 * threads keeps to the same columns: so one reading serves the gradient of the
 * sum and what the rows add to those of gain and bias, which the thread sums in
 * registers. A second launch adds up the blocks' sums, from op->work. How rows
 * are given to blocks depends on nothing but the shape, and so do all bits.
 */
#include "cuda/cuda.h"
#include "cuda/gpu.h"

enum {
	VALUES = NORM_VALUES, ROWS = NORM_ROWS, THREADS = NORM_THREADS,
	TILE = 32		/* of sums: columns, and blocks at once */
};

/* This thread's values of a row. */
template <class T, int N> struct part {
	pack<T, N> at[VALUES / N];
};

/* The thread's column of value 0 of pack k. */
template <int N> __device__ static int find_column(int k)
{
	return (k * blockDim.x + threadIdx.x) * N;
}

/* Zeros beside the row, or where it is not live. */
template <class T, int N>
__device__ static part<T, N> load_part(const void *row, int width, bool live)
{
	part<T, N> values = {};

#pragma unroll
	for (int k = 0; k < VALUES / N; k++)
		if (live && find_column<N>(k) < width)
			values.at[k] = load_pack<N>((const T *)row +
						    find_column<N>(k));
	return values;
}

/* All that the thread has of some row. */
template <class T, int N> struct held {
	part<T, N> x, dout, dsum;
	float mean, rstd;
};

template <class T, int N>
__device__ static held<T, N> load_row(const struct op_norm_backward &op,
				      int row)
{
	bool live = row < op.rows;
	size_t begin = live ? (size_t)row * (size_t)op.width : 0;

	return { load_part<T, N>((const T *)op.sum + begin, op.width, live),
		 load_part<T, N>((const T *)op.dout + begin, op.width, live),
		 load_part<T, N>((const T *)op.dsum + begin, op.width, live),
		 live ? op.mean[row] : 0, live ? op.rstd[row] : 0 };
}

/* Adds the row to the columns' sums; returns the columns' part of the row's. */
template <class T, int N>
__device__ static float2 add_up(const held<T, N> &row, const part<T, N> &gain,
				float (&dgain)[VALUES], float (&dbias)[VALUES])
{
	float2 moments = { 0, 0 };

#pragma unroll
	for (int i = 0; i < VALUES; i++) {
		float dout = widen(row.dout.at[i / N].at[i % N]);
		float x = (widen(row.x.at[i / N].at[i % N]) - row.mean) *
			  row.rstd;
		float dy = dout * widen(gain.at[i / N].at[i % N]);

		moments.x += dy;
		moments.y += dy * x;
		dgain[i] += dout * x;
		dbias[i] += dout;
	}
	return moments;
}

/* Forms means over a row of what threads have, in the order of warps. */
template <int R>
__device__ static void sum_block(float2 (&moments)[R], int width, float2 *room)
{
	int warps = blockDim.x / 32;

#pragma unroll
	for (int r = 0; r < R; r++) {
		float first = warp_sum(moments[r].x);
		float second = warp_sum(moments[r].y);

		if (threadIdx.x % 32 == 0)
			room[r * warps + threadIdx.x / 32] = { first, second };
		moments[r] = { 0, 0 };
	}
	__syncthreads();
#pragma unroll
	for (int r = 0; r < R; r++) {
		for (int warp = 0; warp < warps; warp++) {
			moments[r].x += room[r * warps + warp].x;
			moments[r].y += room[r * warps + warp].y;
		}
		moments[r].x /= (float)width;
		moments[r].y /= (float)width;
	}
}

__device__ static float find_gradient(float dout, float gain, float x,
				      float rstd, float2 means)
{
	return rstd * (dout * gain - means.x - x * means.y);
}

template <class T, int N>
__device__ static void store_row(T *to, int width, const held<T, N> &row,
				 const part<T, N> &gain, float2 means)
{
#pragma unroll
	for (int k = 0; k < VALUES / N; k++) {
		pack<T, N> dsum = row.dsum.at[k];

#pragma unroll
		for (int j = 0; j < N; j++)
			dsum.at[j] = narrow<T>(
				widen(dsum.at[j]) +
				find_gradient(widen(row.dout.at[k].at[j]),
					      widen(gain.at[k].at[j]),
					      (widen(row.x.at[k].at[j]) -
					       row.mean) * row.rstd,
					      row.rstd, means));
		if (find_column<N>(k) < width)
			store_pack(to + find_column<N>(k), dsum);
	}
}

/* The block's sums of a gradient, in fp32. */
template <int N>
__device__ static void store_sums(float *to, int width,
				  const float (&sums)[VALUES])
{
	constexpr int M = N < 4 ? N : 4;

#pragma unroll
	for (int i = 0; i < VALUES; i += M) {
		int column = find_column<N>(i / N) + i % N;
		pack<float, M> some;

#pragma unroll
		for (int j = 0; j < M; j++)
			some.at[j] = sums[i + j];
		if (column < width)
			store_pack(to + column, some);
	}
}

/*
 * ROWS rows at once, so that enough of memory is under way. The block's sums
 * of moments take turns in two places: one barrier does for both.
 */
template <class T, int N>
__global__ __launch_bounds__(THREADS)
void norm_backward_kernel(struct op_norm_backward op)
{
	const part<T, N> gain = load_part<T, N>(op.gain, op.width, true);
	float2 *room = (float2 *)dynamic_shared();
	float *sums = (float *)op.work + (size_t)blockIdx.x * 2 * op.width;
	float dgain[VALUES] = { 0 }, dbias[VALUES] = { 0 };
	int turn = 0;

	for (int begin = blockIdx.x * ROWS; begin < op.rows;
	     begin += gridDim.x * ROWS, turn ^= 1) {
		held<T, N> rows[ROWS];
		float2 moments[ROWS];

#pragma unroll
		for (int r = 0; r < ROWS; r++)
			rows[r] = load_row<T, N>(op, begin + r);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			moments[r] = add_up(rows[r], gain, dgain, dbias);
		sum_block(moments, op.width,
			  room + turn * ROWS * (blockDim.x / 32));
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (begin + r < op.rows)
				store_row((T *)op.dsum + (size_t)(begin + r) *
					  op.width, op.width, rows[r], gain,
					  moments[r]);
	}
	store_sums<N>(sums, op.width, dgain);
	store_sums<N>(sums + op.width, op.width, dbias);
}

/* Adds one row of any width, which is read twice. */
template <class T>
__device__ static void add_row(const struct op_norm_backward &op, int row,
			       float *dgain, float *dbias, float2 *room)
{
	size_t begin = (size_t)row * (size_t)op.width;
	const T *x = (const T *)op.sum + begin, *gain = (const T *)op.gain;
	const T *dout = (const T *)op.dout + begin;
	T *dsum = (T *)op.dsum + begin;
	float mean = op.mean[row], rstd = op.rstd[row];
	float2 moments[1] = { { 0, 0 } };

	for (int i = threadIdx.x; i < op.width; i += blockDim.x) {
		float dy = widen(dout[i]) * widen(gain[i]);

		moments[0].x += dy;
		moments[0].y += dy * ((widen(x[i]) - mean) * rstd);
	}
	sum_block(moments, op.width, room);
	for (int i = threadIdx.x; i < op.width; i += blockDim.x) {
		float d = widen(dout[i]), y = (widen(x[i]) - mean) * rstd;

		dgain[i] += d * y;
		dbias[i] += d;
		dsum[i] = narrow<T>(widen(dsum[i]) + find_gradient(
			d, widen(gain[i]), y, rstd, moments[0]));
	}
}

/*
 * The same where rows are too long for a block to hold, or of a width that is
 * read value by value; the block's sums are in memory from the beginning.
 */
template <class T>
__global__ __launch_bounds__(THREADS)
void norm_backward_plain_kernel(struct op_norm_backward op)
{
	float2 *room = (float2 *)dynamic_shared();
	float *dgain = (float *)op.work + (size_t)blockIdx.x * 2 * op.width;
	float *dbias = dgain + op.width;
	int turn = 0;

	for (int i = threadIdx.x; i < op.width; i += blockDim.x)
		dgain[i] = dbias[i] = 0;
	for (int row = blockIdx.x; row < op.rows; row += gridDim.x, turn ^= 1)
		add_row<T>(op, row, dgain, dbias,
			   room + turn * (blockDim.x / 32));
}

/*
 * dgain and dbias, 2 width columns: each thread adds some blocks' sums of one,
 * and the first row of threads what the others have.
 */
template <class T>
__global__ __launch_bounds__(TILE * TILE)
void norm_sums_kernel(struct op_norm_backward op, int blocks)
{
	int column = blockIdx.x * TILE + threadIdx.x, width = op.width;
	float *room = (float *)dynamic_shared(), sum = 0;
	const float *sums = (const float *)op.work;

	if (column < 2 * width)
		for (int i = threadIdx.y; i < blocks; i += TILE)
			sum += sums[(size_t)i * 2 * width + column];
	room[threadIdx.y * TILE + threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || column >= 2 * width)
		return;
	for (int i = 1; i < TILE; i++)
		sum += room[i * TILE + threadIdx.x];
	T *to = column < width ? (T *)op.dgain + column :
		(T *)op.dbias + (column - width);
	*to = narrow<T>(op.accumulate ? widen(*to) + sum : sum);
}

template <class T>
static cudaError_t run(cudaStream_t stream, const struct op_norm_backward *op)
{
	constexpr int N = 16 / sizeof(T);
	unsigned blocks = sizes_count_norm_blocks(op->rows, op->width);
	unsigned threads = sizes_count_norm_threads(op->width);
	bool plain = op->width % N != 0 || op->width > VALUES * THREADS;
	cudaError_t error = launch(stream, blocks, threads, 2 * ROWS *
				   (threads / 32) * sizeof(float2),
				   plain ? norm_backward_plain_kernel<T> :
				   norm_backward_kernel<T, N>, *op);

	return error != cudaSuccess ? error :
	       launch(stream, (2 * (unsigned)op->width + TILE - 1) / TILE,
		      dim3(TILE, TILE), TILE * TILE * sizeof(float),
		      norm_sums_kernel<T>, *op, (int)blocks);
}

extern "C" void cuda_norm_backward(struct device *device,
				   const struct op_norm_backward *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	FOR_TYPE(device->type, cuda_check(device, run<T>(stream, op),
					  "layer norm, backward"));
}
