/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device language that kernels (.cu files) include: CUDA's under nvcc;
 * without a GPU an emulated one, in tests/cuda_on_cpu. All assembly is here, a
 * function an instruction (PTX ISA 8), so that each can have its emulated twin.
 *
 * Both are the same program by these rules. Kernels use launch() instead of
 * <<<>>>. Static __shared__ arrays are in plain functions alone, dynamic ones
 * come by dynamic_shared(). The blocks of a launch do not communicate, nor use
 * atomics: a second launch does that, which gives equal bits too. All threads
 * of a block reach each __syncthreads(), and a shuffle orders no memory.
 */
#ifndef DDP_TRAIN_GPU_H
#define DDP_TRAIN_GPU_H

#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* The bytes that launch() was asked for, at a multiple of 128. */
__device__ inline void *dynamic_shared(void)
{
	extern __shared__ __align__(128) char dynamic_shared_[];

	return dynamic_shared_;
}

/* d += a b: a 16 x 16 by rows, b 16 x 8 by columns; d in fp32 */
__device__ inline void mma(float (&d)[4], const uint32_t (&a)[4],
			   const uint32_t (&b)[2], __nv_bfloat16)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
		     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
		       "r"(b[0]), "r"(b[1]));
}

__device__ inline void mma(float (&d)[4], const uint32_t (&a)[4],
			   const uint32_t (&b)[2], __half)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
		       "r"(b[0]), "r"(b[1]));
}

/*
 * Four 8 x 8 matrices of 16-bit values from shared memory: lane 8 i + j has the
 * address of row j of matrix i, at a multiple of 16 bytes.
 */
__device__ inline void ldmatrix4(uint32_t (&r)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
		     "{%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"((unsigned)__cvta_generic_to_shared(row))
		     : "memory");
}

/* The same, each matrix transposed. */
__device__ inline void ldmatrix4_trans(uint32_t (&r)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
		     "{%0,%1,%2,%3}, [%4];"
		     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
		     : "r"((unsigned)__cvta_generic_to_shared(row))
		     : "memory");
}

/* 16 bytes to shared memory; zeros if not live, and `from` is not read. */
__device__ inline void cp_async16(void *to, const void *from, bool live)
{
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
		     :: "r"((unsigned)__cvta_generic_to_shared(to)),
			"l"(from), "r"(live ? 16 : 0) : "memory");
}

/* Makes a group of all that this thread has copied since the last commit. */
__device__ inline void cp_async_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Wait for all of this thread's groups but the last LEFT. */
template <int LEFT> __device__ inline void cp_async_wait(void)
{
	asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

/* 2^x to a relative error of 2^-22; what is no normal number becomes 0. */
__device__ inline float exp2_approx(float x)
{
	float y;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#else
#include "cuda_on_cpu.h"

static inline float exp2_approx(float x) { return exp2f(x); }
#endif

/* kernel<<<grid, block, shared, stream>>>(arguments...), as plain C++ */
template <class... P, class... A>
static inline cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block,
				 size_t shared, void (*kernel)(P...),
				 A... arguments)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = grid;
	config.blockDim = block;
	config.dynamicSmemBytes = shared;
	config.stream = stream;
#ifdef __CUDACC__
	return cudaLaunchKernelEx(&config, kernel, (P)arguments...);
#else
	return emu_launch_kernel(&config, kernel, (P)arguments...);
#endif
}

/* Values of any type are computed with in fp32. */
__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float widen(__half x) { return __half2float(x); }

template <class T> __device__ inline T narrow(float x);
template <> __device__ inline float narrow<float>(float x) { return x; }
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x)
{
	return __float2bfloat16_rn(x);
}
template <> __device__ inline __half narrow<__half>(float x)
{
	return __float2half_rn(x);
}

/* N values that are read and written at once, at a multiple of their bytes. */
template <class T, int N> struct alignas(sizeof(T) * N) pack {
	T at[N];
};

template <int N, class T>
__device__ inline pack<T, N> load_pack(const T *from)
{
	return *(const pack<T, N> *)from;
}

template <int N, class T>
__device__ inline void store_pack(T *to, const pack<T, N> &values)
{
	*(pack<T, N> *)to = values;
}

__device__ inline float warp_sum(float x)
{
	for (int offset = 16; offset > 0; offset >>= 1)
		x += __shfl_xor_sync(~0u, x, offset);
	return x;
}

__device__ inline double warp_sum(double x)
{
	for (int offset = 16; offset > 0; offset >>= 1)
		x += __shfl_xor_sync(~0u, x, offset);
	return x;
}

__device__ inline float warp_max(float x)
{
	for (int offset = 16; offset > 0; offset >>= 1)
		x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
	return x;
}

/* Call f with a value of a device's type: FOR_TYPE(type, run<T>(...)) */
#define FOR_TYPE(type, call) do { \
	switch (type) { \
	case DEVICE_FP32: { typedef float T; call; break; } \
	case DEVICE_BF16: { typedef __nv_bfloat16 T; call; break; } \
	case DEVICE_FP16: { typedef __half T; call; break; } \
	} \
} while (0)

#endif
