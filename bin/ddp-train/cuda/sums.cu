/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums whose order is laid down: squares by block, the step's state from these,
 * and the tree of sum_tree.h. Where a tensor begins changes how it is read,
 * never in what order values are added.
 */
#include <math.h>

#include "cuda/cuda.h"
#include "cuda/gpu.h"
#include "cuda/part.h"

enum {
	WARPS = PART_THREADS / 32,
	TILE = 2048,		/* sums of blocks that are fetched at once */
	ADDERS = 32,		/* the warp that adds these up */
	FOLD_THREADS = 128
};

/*
 * A block for each DEVICE_BLOCK values. fp64 has the square of a float exactly.
 */
template <class T>
__global__ __launch_bounds__(PART_THREADS)
void sum_squares_kernel(const T *x, size_t count, double *blocks)
{
	double *room = (double *)dynamic_shared(), sum = 0;

	static_assert(PART * PARTS * PART_THREADS == DEVICE_BLOCK,
		      "each thread has PARTS parts of a block");
#pragma unroll
	for (int i = 0; i < PARTS; i++) {
		floats values = read_part(x, find_part(i, 0, count));

#pragma unroll
		for (int j = 0; j < PART; j++)
			sum += (double)values.at[j] * (double)values.at[j];
	}
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		room[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (int warp = 1; warp < WARPS; warp++)
		sum += room[warp];
	blocks[blockIdx.x] = sum;
}

__device__ static void change_loss_scale(struct step_state *state)
{
	if (state->skip)
		state->loss_scale /= 2;
	else if (state->good < LOSS_SCALE_STEPS)
		return;
	else
		state->loss_scale *= 2;
	state->good = 0;
}

__device__ static void finish_step(const struct op_step &op, double sum)
{
	struct step_state state = *op.state;
	double factor = 1;

	state.norm = sqrt(sum) / state.loss_scale;
	state.skip = !isfinite(state.norm);
	if (op.clip > 0 && state.norm + 1e-6 > op.clip)
		factor = op.clip / (state.norm + 1e-6);
	state.factor = factor / state.loss_scale;
	state.updates += !state.skip;
	state.good += !state.skip;
	state.correction1 = 1 - pow(op.beta1, (double)state.updates);
	state.correction2 = 1 - pow(op.beta2, (double)state.updates);
	if (op.dynamic)
		change_loss_scale(&state);
	*op.state = state;
}

/* Up to TILE sums of blocks in their order, from begin on, to shared memory. */
__device__ static void fetch_sums(const struct op_step &op, size_t begin,
				  double *tile)
{
	for (unsigned i = threadIdx.x - ADDERS; i < TILE && begin + i <
	     op.count; i += blockDim.x - ADDERS)
		tile[i] = op.blocks[op.order ? op.order[begin + i] : begin + i];
}

/*
 * One block. Its first thread adds what the warps behind its own fetch
 * meanwhile: the order leaves nothing else to do at once.
 */
__global__ __launch_bounds__(1024, 1) void step_kernel(struct op_step op)
{
	double *tiles = (double *)dynamic_shared(), sum = 0;

	if (threadIdx.x >= ADDERS)
		fetch_sums(op, 0, tiles);
	__syncthreads();
	for (size_t begin = 0; begin < op.count; begin += TILE) {
		size_t rest = op.count - begin, turn = begin / TILE % 2;
		const double *tile = tiles + turn * TILE;
		int count = rest < TILE ? (int)rest : TILE;

		if (threadIdx.x >= ADDERS)
			fetch_sums(op, begin + TILE, tiles + (1 - turn) * TILE);
		else if (threadIdx.x == 0)
#pragma unroll 16
			for (int i = 0; i < count; i++)
				sum += tile[i];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		finish_step(op, sum);
}

__device__ static floats add(floats a, floats b)
{
#pragma unroll
	for (int j = 0; j < PART; j++)
		a.at[j] += b.at[j];
	return a;
}

/* Returns the next source of the tree's first level, depth first. */
__device__ static int find_next(int i, int half)
{
	int bit = half / 2;

	for (; i & bit; bit /= 2)
		i ^= bit;
	return i | bit;
}

/*
 * A thread sums its part of all vectors, depth first: of `half` pairs, half
 * being the largest power of two below their number. Sums that wait for their
 * other half are in shared memory, one a level, each thread's its own.
 */
__global__ __launch_bounds__(FOLD_THREADS)
void fold_kernel(float *to, const float *from, int parts, int half,
		 size_t stride, size_t count, int shift)
{
	floats *waiting = (floats *)dynamic_shared() + threadIdx.x, sum = {};
	size_t number = (size_t)blockIdx.x * FOLD_THREADS + threadIdx.x;
	const struct part at = { (ptrdiff_t)(number * PART) - shift,
				 (ptrdiff_t)count };

	for (int i = 0, pair = 0; i < half; i++, pair = find_next(pair, half)) {
		int level = 0;

		sum = read_part(from + (size_t)pair * stride, at);
		if (pair < parts - half)
			sum = add(sum, read_part(from + (size_t)(pair + half) *
						 stride, at));
		for (; i >> level & 1; level++)
			sum = add(waiting[level * FOLD_THREADS], sum);
		if (i + 1 < half)
			waiting[level * FOLD_THREADS] = sum;
	}
	write_part(to, at, sum);
}

static int find_half(int parts)
{
	int half = 1;

	while (half < parts - half)
		half *= 2;
	return half;
}

static size_t count_levels(int half)
{
	size_t levels = 0;

	while (half >> levels > 1)
		levels++;
	return levels;
}

extern "C" {

void cuda_sum_squares(struct device *device, const struct op_sum_squares *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	if (op->count > 0)
		FOR_TYPE(op->type, cuda_check(device, launch(
			stream, count_part_blocks(op->count, 0), PART_THREADS,
			WARPS * sizeof(double), sum_squares_kernel<T>,
			(const T *)op->x, op->count, op->blocks),
			"sums of squares"));
}

void cuda_step(struct device *device, const struct op_step *op)
{
	cuda_check(device, launch(cuda_stream(device, QUEUE_COMPUTE), 1, 1024,
				  2 * TILE * sizeof(double), step_kernel, *op),
		   "norm of the gradient");
}

void cuda_fold(struct device *device, enum device_queue queue, float *to,
	       const float *from, int parts, size_t stride, size_t count)
{
	int half = find_half(parts), shift = find_shift(to);
	size_t threads = (count + (size_t)shift + PART - 1) / PART;

	if (count > 0)
		cuda_check(device, launch(
			cuda_stream(device, queue),
			(unsigned)((threads + FOLD_THREADS - 1) / FOLD_THREADS),
			FOLD_THREADS,
			count_levels(half) * FOLD_THREADS * sizeof(floats),
			fold_kernel, to, from, parts, half, stride, count,
			shift), "sum in the order of ranks");
}

}
