/* SPDX-License-Identifier: BSD-3-Clause */
/* GELU, its slope, and what else surrounds a product. */
#include "cuda/gpu.h"
#include "cuda/cuda.h"

enum {
	THREADS = 256,
	WARPS = THREADS / 32,
	REPEATED = 256		/* rows: with THREADS columns they fill a GPU */
};

/*
 * GELU as GPT-2 has it: x / 2 * (1 + tanh(u)) = x / (1 + exp(-2 u)) with
 * u = sqrt(2 / pi) * (x + 0.044715 x^3). This is exp(-2 u), but at most
 * exp(80): it is multiplied by what can be 0.
 */
__device__ static inline float gelu_exp(float x)
{
	return expf(fminf(x * (-1.5957691216f - 0.0713548163f * (x * x)),
			  80.f));
}

__device__ static inline float gelu(float x)
{
	return __fdividef(x, 1 + gelu_exp(x));
}

/* s + s (1 - s) x 2 u', with s = 1 / (1 + exp(-2 u)). */
__device__ static inline float gelu_slope(float x)
{
	float e = gelu_exp(x), s = __fdividef(1.f, 1 + e);
	float slope = x * (1.5957691216f + 0.2140644489f * (x * x));

	/* s * e is 1 - s without cancellation; e * slope could overflow. */
	return s + s * (s * e * slope);
}

/* Sets y *= gelu'(x) with SLOPE, else y = gelu(x): N values, or the rest. */
template <class T, bool SLOPE>
__global__ void gelu_kernel(const T *x, T *y, size_t count, bool aligned)
{
	constexpr int N = 16 / sizeof(T);
	size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * N;

	if (aligned && i + N <= count) {
		pack<T, N> in = load_pack<N>(x + i), out = in;

		if (SLOPE)
			out = load_pack<N>(y + i);
#pragma unroll
		for (int j = 0; j < N; j++)
			out.at[j] = narrow<T>(SLOPE ?
				widen(out.at[j]) * gelu_slope(widen(in.at[j])) :
				gelu(widen(in.at[j])));
		store_pack(y + i, out);
		return;
	}
	for (size_t end = i + N < count ? i + N : count; i < end; i++)
		y[i] = narrow<T>(SLOPE ? widen(y[i]) * gelu_slope(widen(x[i])) :
					 gelu(widen(x[i])));
}

static bool is_aligned(const void *at)
{
	return (uintptr_t)at % 16 == 0;
}

template <class T, bool SLOPE>
static void run_gelu(struct device *device, const void *x, void *y,
		     size_t count)
{
	size_t per_block = THREADS * 16 / sizeof(T);
	unsigned blocks = (unsigned)((count + per_block - 1) / per_block);

	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE), blocks,
				  THREADS, 0, gelu_kernel<T, SLOPE>,
				  (const T *)x, (T *)y, count,
				  is_aligned(x) && is_aligned(y)), "GELU");
}

void cuda_gelu(struct device *device, const void *pre, void *y, size_t count)
{
	FOR_TYPE(device->type, (run_gelu<T, false>(device, pre, y, count)));
}

void cuda_gelu_backward(struct device *device, const void *pre, void *dy,
			size_t count)
{
	FOR_TYPE(device->type, (run_gelu<T, true>(device, pre, dy, count)));
}

/* A thread writes its column of every gridDim.y-th row. */
template <class T>
__global__ void repeat_kernel(int rows, int width, const T *row, T *y)
{
	int column = blockIdx.x * THREADS + threadIdx.x;

	if (column >= width)
		return;
	for (int i = blockIdx.y; i < rows; i += gridDim.y)
		y[(size_t)i * width + column] = row[column];
}

template <class T>
static void run_repeat(struct device *device, int rows, int width,
		       const void *row, void *y)
{
	dim3 grid((width + THREADS - 1) / THREADS,
		  rows < REPEATED ? rows : REPEATED);

	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE), grid,
				  THREADS, 0, repeat_kernel<T>, rows, width,
				  (const T *)row, (T *)y), "a bias");
}

void cuda_repeat_row(struct device *device, int rows, int width,
		     const void *row, void *y)
{
	FOR_TYPE(device->type, run_repeat<T>(device, rows, width, row, y));
}

/*
 * Block (i, j): of part j of the rows, 32 N columns are summed, by each warp
 * every eighth row, and then the warps' sums in order. N divides the width.
 */
template <class From, class To, int N>
__global__ void __launch_bounds__(THREADS)
sum_rows_kernel(int rows, int width, int rows_each, const From *x, bool add,
		To *to)
{
	float *sums = (float *)dynamic_shared(), sum[N] = {}, total = 0;
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	int column = (blockIdx.x * 32 + lane) * N;
	int begin = blockIdx.y * rows_each;
	int end = begin + rows_each < rows ? begin + rows_each : rows;

	for (int row = begin + warp; row < end && column < width;
	     row += WARPS) {
		pack<From, N> values = load_pack<N>(x + (size_t)row * width +
						    column);

#pragma unroll
		for (int j = 0; j < N; j++)
			sum[j] += widen(values.at[j]);
	}
#pragma unroll
	for (int j = 0; j < N; j++)
		sums[(warp * N + j) * 32 + lane] = sum[j];
	__syncthreads();
	column += warp;			/* and value `warp` of its N */
	if (warp >= N || column >= width)
		return;
	for (int i = 0; i < WARPS; i++)
		total += sums[(i * N + warp) * 32 + lane];
	to += (size_t)blockIdx.y * width + column;
	*to = narrow<To>(add ? widen(*to) + total : total);
}

template <class From, class To, int N>
static void sum_parts(struct device *device, int rows, int width, int parts,
		      const From *x, bool add, To *to)
{
	dim3 grid((width + 32 * N - 1) / (32 * N), parts);

	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE), grid,
				  THREADS, THREADS * N * sizeof(float),
				  sum_rows_kernel<From, To, N>, rows, width,
				  (rows + parts - 1) / parts, x, add, to),
		   "a bias' gradient");
}

/*
 * About 1024 blocks fill any GPU, and 64 rows are worth one. The number of
 * parts must not depend on the GPU: it decides the order of the sums.
 */
static int count_parts(int rows, int width, int columns)
{
	int parts = 1024 / ((width + columns - 1) / columns);
	int most = CUDA_SUMS / width;

	parts = parts < (rows + 63) / 64 ? parts : (rows + 63) / 64;
	parts = parts < most ? parts : most;
	return parts > 1 ? parts : 1;
}

template <class T, int N>
static void run_sum_rows(struct device *device, int rows, int width,
			 const T *x, bool add, T *to)
{
	int parts = count_parts(rows, width, 32 * N);
	float *sums = cuda_sums(device);

	if (parts == 1) {
		sum_parts<T, T, N>(device, rows, width, 1, x, add, to);
		return;
	}
	sum_parts<T, float, N>(device, rows, width, parts, x, false, sums);
	sum_parts<float, T, 1>(device, parts, width, 1, sums, add, to);
}

template <class T>
static void choose_sum_rows(struct device *device, int rows, int width,
			    const void *x, bool add, void *to)
{
	constexpr int N = 16 / sizeof(T);

	if (width % N == 0 && is_aligned(x))
		run_sum_rows<T, N>(device, rows, width, (const T *)x, add,
				   (T *)to);
	else
		run_sum_rows<T, 1>(device, rows, width, (const T *)x, add,
				   (T *)to);
}

void cuda_sum_rows(struct device *device, int rows, int width, const void *x,
		   bool add, void *to)
{
	FOR_TYPE(device->type, choose_sum_rows<T>(device, rows, width, x, add,
						  to));
}
