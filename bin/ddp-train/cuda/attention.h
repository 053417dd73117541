/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts that the kernels of attention in 16 bit share: tiles of rows of one
 * head in shared memory, and products of them by tensor cores (mma), in fp32. T
 * is the type, D the values of a head's row.
 *
 * A fragment is what the 32 lanes of a warp hold of 16 rows (PTX ISA, mma's
 * m16n8k16). Of a product c, lane l has rows l / 4 and that + 8, and of each 8
 * columns l % 4 * 2 and the next. c[m][n][2 * h + j] is row 16 m + l / 4 + 8 h
 * and column 8 n + l % 4 * 2 + j. Packed in 16 bit, the same registers are the
 * left factor of a next product: probabilities never leave them.
 */
#ifndef DDP_TRAIN_CUDA_ATTENTION_H
#define DDP_TRAIN_CUDA_ATTENTION_H

#include "cuda/cuda.h"
#include "cuda/gpu.h"

/* attention_plain.cu: any type, and heads of up to PLAIN_SIZE values */
enum { PLAIN_SIZE = 256 };

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t attention_plain(cudaStream_t stream, enum device_type type,
			    const struct op_attention *op);
cudaError_t attention_backward_plain(cudaStream_t stream,
				     enum device_type type,
				     const struct op_attention_backward *op);
#ifdef __cplusplus
}
#endif

/* Blocks in y and z of a grid. */
enum { GRID_LIMIT = 65535 };

/* Returns true if the kernels for tensor cores have this shape. */
static inline bool attention_is_fast(enum device_type type, int sequences,
				     int heads, int width)
{
	int size = width / heads;

	return type != DEVICE_FP32 &&
	       (size == 16 || size == 32 || size == 64 || size == 128) &&
	       sequences <= GRID_LIMIT && heads <= GRID_LIMIT;
}

/* log2(e): kernels compute powers of 2. */
#define LOG2E 1.44269504088896341f

/*
 * Rows in shared memory are 16 bytes longer than D values. So the 8 rows that
 * ldmatrix reads at once begin in 8 different groups of 4 banks.
 */
template <int D> constexpr int ROW = D + 8;

/*
 * The head and the sequence that a block works on; blockIdx.x is the tile of
 * the head's rows. Blocks of one head run together: its keys stay in the L2
 * cache.
 */
struct attention_task {
	int head;		/* heads * sequence + head */
	size_t begin;		/* the sequence's first row */
	int column;		/* the head's first value in a row of out */
};

template <int D>
__device__ inline attention_task find_task(int context, int heads)
{
	return { (int)blockIdx.z * heads + (int)blockIdx.y,
		 (size_t)blockIdx.z * context, (int)blockIdx.y * D };
}

/* Uses a shuffle, so that the compiler sees that all lanes have the same. */
__device__ inline int find_warp(void)
{
	return __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
}

/*
 * Begin to copy ROWS rows, of which there are some below `end`, to a tile;
 * other rows become zeros.
 */
template <int D, int ROWS, int THREADS, class T>
__device__ inline void fetch_rows(T *tile, const T *from, size_t stride,
				  int first, int end)
{
	constexpr int CHUNKS = D / 8;

#pragma unroll
	for (int i = 0; i < ROWS * CHUNKS; i += THREADS) {
		int at = i + (int)threadIdx.x;
		int row = at / CHUNKS, column = at % CHUNKS * 8;

		if (ROWS * CHUNKS % THREADS != 0 && at >= ROWS * CHUNKS)
			break;
		cp_async16(tile + row * ROW<D> + column,
			   from + (size_t)(first + row) * stride + column,
			   first + row < end);
	}
}

/*
 * Rows of two tensors of a head, which pass by N at a time, in two rooms of
 * shared memory: one is filled while the other is worked on.
 */
template <class T, int D, int N, int THREADS> struct attention_stream {
	enum { TILE = N * ROW<D>, ROOM = 2 * TILE };

	T *rooms;			/* two of ROOM values */
	const T *a, *b;			/* the head's first rows */
	size_t a_stride, b_stride;
	int end;			/* of the rows */

	/* The room of rows first .. first + N - 1: of a, and TILE on, of b. */
	__device__ T *find_room(int first) const
	{
		return rooms + first / N % 2 * ROOM;
	}

	__device__ void fetch(int first) const
	{
		T *to = find_room(first);

		fetch_rows<D, N, THREADS>(to, a, a_stride, first, end);
		fetch_rows<D, N, THREADS>(to + TILE, b, b_stride, first, end);
	}
};

/* Values k .. k + 15 of 16 rows of a tile, as the left factor of a product. */
template <int D, class T>
__device__ inline void load_left(uint32_t (&a)[4], const T *rows, int k)
{
	int lane = threadIdx.x % 32;

	ldmatrix4(a, rows + lane % 16 * ROW<D> + k + lane / 16 * 8);
}

/* c += a b^T, for values k .. k + 15 of N rows b of a tile. */
template <int D, int M, int N, class T>
__device__ inline void multiply_rows(float (&c)[M][N / 8][4],
				     const uint32_t (&a)[M][4], const T *b,
				     int k)
{
	int lane = threadIdx.x % 32;

	b += (lane / 16 * 8 + lane % 8) * ROW<D> + k + lane / 8 % 2 * 8;
#pragma unroll
	for (int n = 0; n < N / 16; n++) {
		uint32_t r[4];

		ldmatrix4(r, b + n * 16 * ROW<D>);
#pragma unroll
		for (int m = 0; m < M; m++) {
			mma(c[m][2 * n], a[m], { r[0], r[1] }, T());
			mma(c[m][2 * n + 1], a[m], { r[2], r[3] }, T());
		}
	}
}

/* All fragments of 16 M rows of a tile. */
template <int D, int M, class T>
__device__ inline void load_rows(uint32_t (&a)[D / 16][M][4], const T *rows)
{
#pragma unroll
	for (int k = 0; k < D / 16; k++)
#pragma unroll
		for (int m = 0; m < M; m++)
			load_left<D>(a[k][m], rows + m * 16 * ROW<D>, 16 * k);
}

template <int M, int N>
__device__ inline void set_zero(float (&c)[M][N][4])
{
#pragma unroll
	for (int i = 0; i < 4 * M * N; i++)
		c[i / 4 / N][i / 4 % N][i % 4] = 0;
}

/* c = a b^T, for 16 M rows a in registers, and N rows b of a tile. */
template <int D, int M, int N, class T>
__device__ inline void multiply_held(float (&c)[M][N / 8][4],
				     const uint32_t (&a)[D / 16][M][4],
				     const T *b)
{
	set_zero(c);
#pragma unroll
	for (int k = 0; k < D / 16; k++)
		multiply_rows<D, M, N>(c, a[k], b, 16 * k);
}

/* The same with a in a tile. */
template <int D, int M, int N, class T>
__device__ inline void multiply_tiles(float (&c)[M][N / 8][4], const T *a,
				      const T *b)
{
	set_zero(c);
#pragma unroll
	for (int k = 0; k < D; k += 16) {
		uint32_t left[M][4];

#pragma unroll
		for (int m = 0; m < M; m++)
			load_left<D>(left[m], a + m * 16 * ROW<D>, k);
		multiply_rows<D, M, N>(c, left, b, k);
	}
}

__device__ inline uint32_t pack_pair(float a, float b, __nv_bfloat16)
{
	__nv_bfloat162 pair = __floats2bfloat162_rn(a, b);

	return *(uint32_t *)&pair;
}

__device__ inline uint32_t pack_pair(float a, float b, __half)
{
	__half2 pair = __floats2half2_rn(a, b);

	return *(uint32_t *)&pair;
}

/* c, rounded, as the left factor of a product. */
template <int M, int N, class T>
__device__ inline void pack_left(uint32_t (&a)[N / 16][M][4],
				 const float (&c)[M][N / 8][4], T)
{
#pragma unroll
	for (int n = 0; n < N / 16; n++)
#pragma unroll
		for (int m = 0; m < M; m++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const float *pair =
					c[m][2 * n + i / 2] + i % 2 * 2;

				a[n][m][i] = pack_pair(pair[0], pair[1], T());
			}
}

/* c += a b, for N rows b of a tile. */
template <int D, int M, int N, class T>
__device__ inline void multiply_columns(float (&c)[M][D / 8][4],
					const uint32_t (&a)[N / 16][M][4],
					const T *b)
{
	int lane = threadIdx.x % 32;

	b += lane % 16 * ROW<D> + lane / 16 * 8;
#pragma unroll
	for (int k = 0; k < N / 16; k++)
#pragma unroll
		for (int n = 0; n < D / 16; n++) {
			uint32_t r[4];

			ldmatrix4_trans(r, b + k * 16 * ROW<D> + n * 16);
#pragma unroll
			for (int m = 0; m < M; m++) {
				mma(c[m][2 * n], a[k][m], { r[0], r[1] }, T());
				mma(c[m][2 * n + 1], a[k][m], { r[2], r[3] },
				    T());
			}
		}
}

/*
 * Scores of a key after the query become -inf: QUERIES says whether rows are
 * queries, and columns keys, or the other way. row and column are c[0][0][0]'s.
 */
template <bool QUERIES, int M, int N>
__device__ inline void hide_later(float (&c)[M][N][4], int row, int column)
{
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				int y = row + 16 * m + i / 2 * 8;
				int x = column + 8 * n + i % 2;

				if (QUERIES ? x > y : y > x)
					c[m][n][i] = -INFINITY;
			}
}

/*
 * Write a warp's rows of c * factor to memory by way of a part of shared memory
 * that only this warp uses, so that 16 bytes go at once; `first` is the first
 * of the rows.
 */
template <int D, int M, class T>
__device__ inline void store_rows(T *own, const float (&c)[M][D / 8][4],
				  const float (&factor)[M][2], T *to,
				  size_t stride, int first, int end)
{
	int lane = threadIdx.x % 32;

	__syncwarp();
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < D / 8; n++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				const float *pair = c[m][n] + 2 * h;
				int row = 16 * m + lane / 4 + 8 * h;

				*(uint32_t *)(own + row * ROW<D> + 8 * n +
					      lane % 4 * 2) =
					pack_pair(pair[0] * factor[m][h],
						  pair[1] * factor[m][h], T());
			}
	__syncwarp();
#pragma unroll
	for (int i = lane; i < 2 * M * D; i += 32) {
		int row = i / (D / 8), column = i % (D / 8) * 8;

		if (first + row < end)
			*(uint4 *)(to + (size_t)(first + row) * stride +
				   column) =
				*(const uint4 *)(own + row * ROW<D> + column);
	}
}

/* launch() of a kernel that may need more shared memory than is usual */
template <class K, class... A>
static inline cudaError_t launch_attention(cudaStream_t stream, K *kernel,
					   dim3 blocks, int threads,
					   size_t shared, A... arguments)
{
	cudaError_t error = cudaFuncSetAttribute((const void *)kernel,
		cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

	if (error)
		return error;
	return launch(stream, blocks, (unsigned)threads, shared,
		      kernel, arguments...);
}

#endif
