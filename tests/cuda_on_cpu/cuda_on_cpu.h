/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's device language for a plain C++ compiler: what kernels include instead
 * of nvcc's half of gpu.h. Types and prototypes are NVIDIA's own headers; only
 * what they leave to nvcc is here. Threads of a block are fibers of one host
 * thread that change only in barriers and warp instructions (fiber.cc).
 *
 * What the folder is for, and what it cannot tell, is in README.
 */
#ifndef CUDA_ON_CPU_H
#define CUDA_ON_CPU_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __grid_constant__
#undef __forceinline__
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
/* So that what calls the engine is the kernel's own line */
#define EMU_INLINE static __forceinline__

/* All arrays in one section, so that the engine knows where they are. */
#define __shared__ \
	static __attribute__((section("cuda_shared"), aligned(16)))
extern "C" char __start_cuda_shared[]
	__attribute__((weak, visibility("hidden")));
extern "C" char __stop_cuda_shared[]
	__attribute__((weak, visibility("hidden")));

/* Within a module, not of whoever loads it */
#pragma GCC visibility push(hidden)

/* Constant as long as a thread runs; the engine sets them at each change. */
extern const uint3 threadIdx __asm__("emu_thread_index");
extern const uint3 blockIdx __asm__("emu_block_index");
extern const dim3 blockDim __asm__("emu_block_dim");
extern const dim3 gridDim __asm__("emu_grid_dim");
extern const int warpSize __asm__("emu_warp_size");

/* What a lane brings to a warp instruction, which the last to come computes. */
struct emu_lane {
	uint64_t value, result;
	int source;
	const void *in[2];
	void *out;
};
typedef void (*emu_warp_fn)(emu_lane *const *lanes, unsigned mask, int arg);

extern "C" {
void emu_static_shared(char *begin, char *end);
void *emu_dynamic_shared(void);
void emu_syncthreads(int line);
void emu_syncwarp(unsigned mask);
void emu_warp(unsigned mask, emu_lane *mine, emu_warp_fn fn, int arg);
void emu_shuffle(emu_lane *const *lanes, unsigned mask, int arg);
void emu_ballot(emu_lane *const *lanes, unsigned mask, int arg);
void emu_mma(emu_lane *const *lanes, unsigned mask, int fp16);
void emu_ldmatrix(emu_lane *const *lanes, unsigned mask, int transpose);
void emu_read_row(const void *row);
void emu_atomic(void *p, int bytes);	/* called before an atomic access */
void emu_cp_async(void *to, const void *from, int bytes, int live);
void emu_cp_commit(void);
void emu_cp_wait(int left);
int emu_problems(void);			/* that were found so far */

/* Run run(call) as a kernel; call, of so many bytes, is given up by drop. */
cudaError_t emu_launch(const cudaLaunchConfig_t *config, const void *kernel,
		       void *call, size_t bytes, void (*run)(void *),
		       void (*drop)(void *));
}

#pragma GCC visibility pop

namespace {
struct emu_shared_section {
	emu_shared_section()
	{
		emu_static_shared(__start_cuda_shared, __stop_cuda_shared);
	}
} emu_shared_section_;
}

/* ---- barriers and fences: compilers copy calls, so each has its line */

#define __syncthreads() emu_syncthreads(__LINE__)
EMU_INLINE void __syncwarp(unsigned mask = ~0u) { emu_syncwarp(mask); }
EMU_INLINE void __threadfence(void) { }
EMU_INLINE void __threadfence_block(void) { }

EMU_INLINE int emu_lane_id(void)
{
	return (int)((threadIdx.x + blockDim.x *
		      (threadIdx.y + blockDim.y * threadIdx.z)) & 31);
}

/* ---- shuffles and votes */

template <class T> EMU_INLINE T emu_take(unsigned mask, T v, int source)
{
	static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
	emu_lane lane = {};

	memcpy(&lane.value, &v, sizeof(T));
	lane.source = source;
	emu_warp(mask, &lane, emu_shuffle, 0);
	memcpy(&v, &lane.result, sizeof(T));
	return v;
}

template <class T>
EMU_INLINE T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32)
{
	int id = emu_lane_id(), from = id ^ x;

	return emu_take(mask, v, from / width > id / width ? id : from);
}

template <class T>
EMU_INLINE T __shfl_down_sync(unsigned mask, T v, unsigned d,
			      int width = 32)
{
	int id = emu_lane_id(), from = id + (int)d;

	return emu_take(mask, v, from / width != id / width ? id : from);
}

template <class T>
EMU_INLINE T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32)
{
	int id = emu_lane_id(), from = id - (int)d;

	return emu_take(mask, v, from < id / width * width ? id : from);
}

template <class T>
EMU_INLINE T __shfl_sync(unsigned mask, T v, int source, int width = 32)
{
	return emu_take(mask, v, emu_lane_id() / width * width +
			(source & (width - 1)));
}

EMU_INLINE unsigned __ballot_sync(unsigned mask, int p)
{
	emu_lane lane = {};

	lane.value = p != 0;
	emu_warp(mask, &lane, emu_ballot, 0);
	return (unsigned)lane.result;
}

EMU_INLINE int __any_sync(unsigned mask, int p)
{
	return __ballot_sync(mask, p) != 0;
}

EMU_INLINE int __all_sync(unsigned mask, int p)
{
	return __ballot_sync(mask, p) == mask;
}

/* ---- atomics: fibers do not change inside a plain operation */

template <class T, class F>
__attribute__((no_sanitize("thread"), noinline))
static T emu_update(T *p, F f)
{
	T old = *p;

	emu_atomic(p, sizeof(T));
	*p = f(old);
	return old;
}

template <class T> EMU_INLINE T atomicAdd(T *p, T v)
{
	return emu_update(p, [v](T old) { return (T)(old + v); });
}

template <class T> EMU_INLINE T atomicMax(T *p, T v)
{
	return emu_update(p, [v](T old) { return old < v ? v : old; });
}

template <class T> EMU_INLINE T atomicMin(T *p, T v)
{
	return emu_update(p, [v](T old) { return v < old ? v : old; });
}

template <class T> EMU_INLINE T atomicOr(T *p, T v)
{
	return emu_update(p, [v](T old) { return old | v; });
}

template <class T> EMU_INLINE T atomicExch(T *p, T v)
{
	return emu_update(p, [v](T) { return v; });
}

template <class T> EMU_INLINE T atomicCAS(T *p, T want, T v)
{
	return emu_update(p, [=](T old) { return old == want ? v : old; });
}

/* ---- the twins of what gpu.h has as assembly */

EMU_INLINE void *dynamic_shared(void)
{
	return emu_dynamic_shared();
}

EMU_INLINE void emu_multiply(float (&d)[4], const uint32_t (&a)[4],
			     const uint32_t (&b)[2], int fp16)
{
	emu_lane lane = {};

	lane.in[0] = a;
	lane.in[1] = b;
	lane.out = d;
	emu_warp(~0u, &lane, emu_mma, fp16);
}

EMU_INLINE void mma(float (&d)[4], const uint32_t (&a)[4],
		    const uint32_t (&b)[2], __nv_bfloat16)
{
	emu_multiply(d, a, b, 0);
}

EMU_INLINE void mma(float (&d)[4], const uint32_t (&a)[4],
		    const uint32_t (&b)[2], __half)
{
	emu_multiply(d, a, b, 1);
}

EMU_INLINE void emu_load(uint32_t (&r)[4], const void *row, int transpose)
{
	emu_lane lane = {};

	lane.in[0] = row;
	lane.out = r;
	emu_read_row(row);
	emu_warp(~0u, &lane, emu_ldmatrix, transpose);
}

EMU_INLINE void ldmatrix4(uint32_t (&r)[4], const void *row)
{
	emu_load(r, row, 0);
}

EMU_INLINE void ldmatrix4_trans(uint32_t (&r)[4], const void *row)
{
	emu_load(r, row, 1);
}

EMU_INLINE void cp_async16(void *to, const void *from, bool live)
{
	emu_cp_async(to, from, 16, live);
}

EMU_INLINE void cp_async_commit(void)
{
	emu_cp_commit();
}

template <int LEFT> EMU_INLINE void cp_async_wait(void)
{
	emu_cp_wait(LEFT);
}

/* ---- launches: arguments are copied now, and used when the stream is there */

template <class... P> struct emu_call {
	void (*kernel)(P...);
	std::tuple<std::decay_t<P>...> arguments;

	static void run(void *p)
	{
		emu_call *call = (emu_call *)p;

		std::apply(call->kernel, call->arguments);
	}
	static void drop(void *p)
	{
		delete (emu_call *)p;
	}
};

template <class... P, class... A>
EMU_INLINE cudaError_t emu_launch_kernel(const cudaLaunchConfig_t *config,
					 void (*kernel)(P...),
					 const A &...arguments)
{
	typedef emu_call<P...> call;

	return emu_launch(config, (const void *)kernel,
			  new call{ kernel, { (P)arguments... } }, sizeof(call),
			  call::run, call::drop);
}

#include "functions.h"

#endif
