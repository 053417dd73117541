/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's functions of one thread that NVIDIA's headers leave to nvcc: loads by
 * cache policy, arithmetic, and the half-precision functions without a body for
 * the host. Approximations of a GPU (__expf, ex2.approx) are exact here.
 */
#ifndef CUDA_ON_CPU_FUNCTIONS_H
#define CUDA_ON_CPU_FUNCTIONS_H

template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline T __ldca(const T *p) { return *p; }
template <class T> static inline T __ldlu(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }
template <class T> static inline void __stcg(T *p, T v) { *p = v; }
template <class T> static inline void __stwb(T *p, T v) { *p = v; }
template <class T> static inline void __stwt(T *p, T v) { *p = v; }

/* glibc has functions of some of these names. */
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __sinf sinf
#define __cosf cosf
#define __powf powf
#define __tanhf tanhf
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c)
{
	return fmaf(a, b, c);
}
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __fma_rn(double a, double b, double c)
{
	return fma(a, b, c);
}
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }

template <class To, class From> static inline To emu_bits(From from)
{
	To to;

	static_assert(sizeof(To) == sizeof(From), "the same number of bits");
	memcpy(&to, &from, sizeof(to));
	return to;
}

static inline unsigned __float_as_uint(float x)
{
	return emu_bits<unsigned>(x);
}
static inline int __float_as_int(float x) { return emu_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
static inline float __int_as_float(int x) { return emu_bits<float>(x); }
static inline long long __double_as_longlong(double x)
{
	return emu_bits<long long>(x);
}
static inline double __longlong_as_double(long long x)
{
	return emu_bits<double>(x);
}

static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rn(float x) { return (int)lrintf(x); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x)
{
	return __builtin_popcountll(x);
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a,
					    unsigned long long b)
{
	return (unsigned long long)((unsigned __int128)a * b >> 64);
}

template <class A, class B>
static inline std::common_type_t<A, B> min(A a, B b)
{
	typedef std::common_type_t<A, B> T;

	return (T)a < (T)b ? (T)a : (T)b;
}

template <class A, class B>
static inline std::common_type_t<A, B> max(A a, B b)
{
	typedef std::common_type_t<A, B> T;

	return (T)a < (T)b ? (T)b : (T)a;
}

[[noreturn]] static inline void __trap(void) { __builtin_trap(); }

/* ---- half precision, in fp32 and rounded once */

static inline float emu_float(__nv_bfloat16 x) { return __bfloat162float(x); }
static inline float emu_float(__half x) { return __half2float(x); }
template <class T> static inline T emu_half(float x);
template <> inline __nv_bfloat16 emu_half<__nv_bfloat16>(float x)
{
	return __float2bfloat16_rn(x);
}
template <> inline __half emu_half<__half>(float x)
{
	return __float2half_rn(x);
}

#define EMU_HALF(name, value) \
	static inline __nv_bfloat16 name(__nv_bfloat16 h) \
	{ \
		float x = emu_float(h); \
		return emu_half<__nv_bfloat16>(value); \
	} \
	static inline __half name(__half h) \
	{ \
		float x = emu_float(h); \
		return emu_half<__half>(value); \
	}
EMU_HALF(htrunc, truncf(x))
EMU_HALF(hceil, ceilf(x))
EMU_HALF(hfloor, floorf(x))
EMU_HALF(hrint, rintf(x))
EMU_HALF(hsqrt, sqrtf(x))
EMU_HALF(hrsqrt, 1 / sqrtf(x))
EMU_HALF(hrcp, 1 / x)
EMU_HALF(hlog, logf(x))
EMU_HALF(hlog2, log2f(x))
EMU_HALF(hexp, expf(x))
EMU_HALF(hexp2, exp2f(x))
EMU_HALF(htanh, tanhf(x))
EMU_HALF(hcos, cosf(x))
EMU_HALF(hsin, sinf(x))
#undef EMU_HALF

/* Rounded to fp32 on the way, which seldom shows. */
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b,
				   __nv_bfloat16 c)
{
	return emu_half<__nv_bfloat16>(fmaf(emu_float(a), emu_float(b),
					    emu_float(c)));
}

static inline __half __hfma(__half a, __half b, __half c)
{
	return emu_half<__half>(fmaf(emu_float(a), emu_float(b),
				     emu_float(c)));
}

static inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b,
				     __nv_bfloat162 c)
{
	return { __hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y) };
}

static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
	return { __hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y) };
}

#endif
