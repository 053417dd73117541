/* SPDX-License-Identifier: BSD-3-Clause */
/* Layer norm, forward. */
#include "cuda/cuda.h"
#include "cuda/gpu.h"

enum {
	WARPS = 8,		/* most of a block: a warp a row */
	SHARED = 48 << 10	/* bytes that a block has without asking */
};

/*
 * The sum that is normalised becomes `kept`, which is the lane's own memory: a
 * lane reads from there just what it wrote. Returns the row's mean.
 */
template <class T, int N>
__device__ static float add_residual(const struct op_norm &op, size_t begin,
				     int lane, T *kept)
{
	float total = 0;

	for (int i = lane * N; i < op.width; i += 32 * N) {
		pack<T, N> x = load_pack<N>((const T *)op.x + begin + i);

		if (op.residual) {
			pack<T, N> more = load_pack<N>(
				(const T *)op.residual + begin + i);

#pragma unroll
			for (int j = 0; j < N; j++)
				x.at[j] = narrow<T>(widen(x.at[j]) +
						    widen(more.at[j]));
			store_pack((T *)op.sum + begin + i, x);
		}
		store_pack(kept + i, x);
#pragma unroll
		for (int j = 0; j < N; j++)
			total += widen(x.at[j]);
	}
	return warp_sum(total) / (float)op.width;
}

/*
 * Sums squares of differences from the mean. The variance as a difference of
 * two large numbers would lose digits.
 */
template <class T, int N>
__device__ static float find_rstd(const struct op_norm &op, const T *kept,
				  int lane, float mean)
{
	float squares = 0;

	for (int i = lane * N; i < op.width; i += 32 * N) {
		pack<T, N> x = load_pack<N>(kept + i);

#pragma unroll
		for (int j = 0; j < N; j++) {
			float off = widen(x.at[j]) - mean;

			squares += off * off;
		}
	}
	return 1 / sqrtf(warp_sum(squares) / (float)op.width + op.eps);
}

template <class T, int N>
__device__ static void normalize(const struct op_norm &op, size_t begin,
				 const T *kept, int lane, float mean,
				 float rstd)
{
	for (int i = lane * N; i < op.width; i += 32 * N) {
		pack<T, N> x = load_pack<N>(kept + i);
		pack<T, N> gain = load_pack<N>((const T *)op.gain + i);
		pack<T, N> bias = load_pack<N>((const T *)op.bias + i);

#pragma unroll
		for (int j = 0; j < N; j++)
			x.at[j] = narrow<T>((widen(x.at[j]) - mean) * rstd *
					    widen(gain.at[j]) +
					    widen(bias.at[j]));
		store_pack((T *)op.out + begin + i, x);
	}
}

/* A warp a row; memory is read and written once. */
template <class T, int N>
__global__ __launch_bounds__(32 * WARPS)
void norm_kernel(struct op_norm op)
{
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	int row = blockIdx.x * (blockDim.x / 32) + warp;
	size_t width = (size_t)op.width, begin = (size_t)row * width;
	T *kept = (T *)dynamic_shared() + (size_t)warp * width;
	float mean, rstd;

	if (row >= op.rows)
		return;
	mean = add_residual<T, N>(op, begin, lane, kept);
	rstd = find_rstd<T, N>(op, kept, lane, mean);
	normalize<T, N>(op, begin, kept, lane, mean, rstd);
	if (lane == 0) {
		op.mean[row] = mean;
		op.rstd[row] = rstd;
	}
}

template <class T, int N>
static cudaError_t launch_norm(cudaStream_t stream, const struct op_norm *op)
{
	size_t bytes = (size_t)op->width * sizeof(T);
	unsigned warps = WARPS;
	cudaError_t error;

	while (warps > 1 && warps * bytes > SHARED)
		warps /= 2;
	error = warps * bytes <= SHARED ? cudaSuccess :
		cudaFuncSetAttribute(
			(const void *)norm_kernel<T, N>,
			cudaFuncAttributeMaxDynamicSharedMemorySize,
			(int)bytes);
	return error != cudaSuccess ? error :
	       launch(stream, ((unsigned)op->rows + warps - 1) / warps,
		      32 * warps, warps * bytes, norm_kernel<T, N>, *op);
}

/* N values at once where rows begin at multiples of 16 bytes. */
template <class T>
static cudaError_t run_norm(cudaStream_t stream, const struct op_norm *op)
{
	constexpr int N = 16 / sizeof(T);

	return op->width % N == 0 ? launch_norm<T, N>(stream, op) :
	       launch_norm<T, 1>(stream, op);
}

extern "C" void cuda_norm(struct device *device, const struct op_norm *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	FOR_TYPE(device->type, cuda_check(device, run_norm<T>(stream, op),
					  "layer norm"));
}
