/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bugs NAME: makes one mistake, which the emulator is to tell of. Names and the
 * words of reports are in emulator.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include "gpu.h"

enum { BYTES = 4096, FLOATS = BYTES / 4 };

static cudaStream_t a, b, c;		/* streams */
static float *x, *y;			/* of the device, zeros */
static cudaEvent_t event;

/* ---- inside a block */

__global__ void divergent(float *p)
{
	if (threadIdx.x < 48)
		__syncthreads();
	p[threadIdx.x] = 1;
}

__global__ void two_places(float *p)
{
	if (threadIdx.x < 32)
		__syncthreads();
	else
		__syncthreads();
	p[threadIdx.x] = 1;
}

__global__ void few_lanes(float *p)
{
	float v = 1;

	if (threadIdx.x < 16)
		v += __shfl_xor_sync(~0u, v, 1);
	p[threadIdx.x] = v;
}

__global__ void absent_lane(float *p)
{
	float v = 1;

	if (threadIdx.x < 16)
		v += __shfl_down_sync(0xffff, v, 8);
	p[threadIdx.x] = v;
}

__global__ void absent_caller(float *p)
{
	p[threadIdx.x] = __shfl_xor_sync(0xffff, 1.f, 1);
}

__global__ void misaligned(float *p)
{
	*(float4 *)(p + 1 + 4 * threadIdx.x) = make_float4(0, 0, 0, 0);
}

__global__ void shared_out(float *p)
{
	float *s = (float *)dynamic_shared();

	s[threadIdx.x] = 1;
	__syncthreads();
	p[threadIdx.x] = s[threadIdx.x + 1];
}

__global__ void shared_raw(float *p)
{
	__shared__ float s[64];

	if (threadIdx.x % 2)
		s[threadIdx.x] = 1;
	__syncthreads();
	p[threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void refilled(float *p)
{
	float *s = (float *)dynamic_shared(), sum = 0;

	for (int i = 0; i < 2; i++) {
		s[threadIdx.x] = p[threadIdx.x + 64 * i];
		__syncthreads();
		sum += s[63 - threadIdx.x];
	}
	p[threadIdx.x] = sum;
}

__global__ void no_syncwarp(float *p)
{
	float *s = (float *)dynamic_shared();

	s[threadIdx.x] = 1;
	__shfl_xor_sync(~0u, 1, 1);
	p[threadIdx.x] = s[threadIdx.x ^ 1];
}

__global__ void half_syncwarp(float *p)
{
	float *s = (float *)dynamic_shared();

	s[threadIdx.x] = 1;
	__syncwarp(threadIdx.x % 32 < 16 ? 0xffff : 0xffff0000);
	p[threadIdx.x] = s[threadIdx.x ^ 16];
}

__global__ void not_awaited(float *p)
{
	float *s = (float *)dynamic_shared();

	if (threadIdx.x < 16)
		cp_async16(s + 4 * threadIdx.x, p + 4 * threadIdx.x, true);
	cp_async_commit();
	__syncthreads();
	p[64 + threadIdx.x] = s[63 - threadIdx.x];
	cp_async_wait<0>();
}

/* Of two groups one is awaited, and both are read. */
__global__ void awaited_late(float *p)
{
	float *s = (float *)dynamic_shared();

	for (int i = 0; i < 2; i++) {
		if (threadIdx.x < 8)
			cp_async16(s + 32 * i + 4 * threadIdx.x,
				   p + 32 * i + 4 * threadIdx.x, true);
		cp_async_commit();
	}
	cp_async_wait<1>();
	__syncthreads();
	p[64 + threadIdx.x] = s[63 - threadIdx.x];
	cp_async_wait<0>();
}

__global__ void left_behind(float *p)
{
	cp_async16((float *)dynamic_shared() + 4 * threadIdx.x,
		   p + 4 * threadIdx.x, true);
	cp_async_commit();
}

__global__ void copy_misaligned(float *p)
{
	cp_async16((float *)dynamic_shared() + 4 * threadIdx.x,
		   p + 4 * threadIdx.x + 1, true);
	cp_async_commit();
	cp_async_wait<0>();
}

__global__ void row_misaligned(float *p)
{
	uint32_t r[4];
	char *s = (char *)dynamic_shared();

	for (int i = 0; i < 20; i++)
		((short *)s)[threadIdx.x * 20 + i] = 0;
	__syncwarp();
	ldmatrix4(r, s + threadIdx.x * 40);
	p[threadIdx.x] = (float)r[0];
}

__global__ void few_multiply(float *p)
{
	float d[4] = {};
	const uint32_t m[4] = {}, n[2] = {};

	mma(d, m, n, __nv_bfloat16());
	p[threadIdx.x] = d[0];
}

__global__ void endless(float *p, int depth)
{
	volatile char room[1024];

	room[depth % 1024] = 1;
	if (depth < 1 << 20)
		endless(p, depth + 1);
	p[0] = room[depth % 1024];
}

/* ---- in global memory */

__global__ void two_blocks(float *p) { p[threadIdx.x] += (float)blockIdx.x; }
__global__ void two_threads(float *p)
{
	p[(threadIdx.x + 1) % 64] = p[threadIdx.x];
}

__global__ void out_of_bounds(float *p) { p[0] = p[FLOATS + threadIdx.x]; }
__global__ void read(float *to, const float *p)
{
	to[threadIdx.x] = p[threadIdx.x];
}

__global__ void write(float *p) { p[threadIdx.x] = (float)threadIdx.x; }
__global__ void mixed(float *p)
{
	if (threadIdx.x == 0 && blockIdx.x == 0)
		p[0] = 0;
	atomicAdd(p, 1.f);
}

static void run(void (*kernel)(float *), int blocks = 1, int threads = 64)
{
	launch(a, blocks, threads, 64 * 40, kernel, x);
}

static void new_memory(float **p) { cudaMalloc((void **)p, BYTES); }

static void raw(void)
{
	float *fresh;

	new_memory(&fresh);
	launch(a, 1, 64, 0, read, x, fresh);
}

static void after_free(void)
{
	float *fresh;

	new_memory(&fresh);
	launch(a, 1, 64, 0, write, fresh);
	cudaFree(fresh);
	launch(a, 1, 64, 0, read, x, fresh);
}

static void freed_twice(void)
{
	float *fresh;

	new_memory(&fresh);
	cudaFree(fresh);
	cudaFree(fresh);
}

static void host_written(void)
{
	static float h[64];

	launch(a, 1, 64, 0, write, h);
}

static void host_read(void)
{
	float *h = (float *)calloc(64, 4);

	launch(a, 1, 64, 0, read, x, h);
}

/* ---- of the host */

static void reads_device(void) { printf("%g\n", (double)x[3]); }
static void writes_device(void) { x[3] = 1; }
static void too_many_threads(void) { launch(a, 1, 1025, 0, write, x); }
static void too_much_shared(void) { launch(a, 1, 64, 49 << 10, write, x); }
static void copies_beyond(void)
{
	cudaMemcpyAsync(x, y, BYTES + 1, cudaMemcpyDeviceToDevice, a);
}

static void copies_wrong_way(void)
{
	float h[4];

	cudaMemcpyAsync(h, x, 16, cudaMemcpyHostToDevice, a);
}

/* ---- between streams */

static void no_event(void)
{
	launch(a, 1, 64, 0, write, x);
	launch(b, 1, 64, 0, read, y, x);
}

static void no_event_back(void)
{
	launch(a, 1, 64, 0, read, y, x);
	launch(b, 1, 64, 0, write, x);
}

static void event_too_early(void)
{
	cudaEventRecord(event, a);
	launch(a, 1, 64, 0, write, x);
	cudaStreamWaitEvent(b, event, 0);
	launch(b, 1, 64, 0, read, y, x);
}

/* c is behind the second reader alone. */
static void two_readers(void)
{
	launch(a, 1, 64, 0, read, y, x);
	launch(b, 1, 64, 0, read, y + 64, x);
	cudaEventRecord(event, b);
	cudaStreamWaitEvent(c, event, 0);
	launch(c, 1, 64, 0, write, x);
}

static void default_stream(void)
{
	cudaMemset(x, 0, BYTES);
	launch(a, 1, 64, 0, read, y, x);
}

static void copied_early(void)
{
	float *pinned;

	cudaMallocHost((void **)&pinned, BYTES);
	launch(a, 1, 64, 0, write, x);
	cudaMemcpyAsync(pinned, x, 256, cudaMemcpyDeviceToHost, b);
}

static void run_endless(void) { launch(a, 1, 32, 0, endless, x, 0); }
static void run_out_of_bounds(void) { run(out_of_bounds); }

static const struct {
	const char *name;
	void (*kernel)(float *);
	int blocks, threads;
	void (*call)(void);
} bugs[] = {
#define KERNEL(name, blocks, threads) { #name, name, blocks, threads, NULL }
#define CALL(name) { #name, NULL, 0, 0, name }
	KERNEL(divergent, 1, 64), KERNEL(two_places, 1, 64),
	KERNEL(few_lanes, 1, 64), KERNEL(absent_lane, 1, 64),
	KERNEL(absent_caller, 1, 32), KERNEL(misaligned, 1, 32),
	{ "shared_out", shared_out, 1, 640, NULL }, KERNEL(shared_raw, 1, 64),
	KERNEL(refilled, 1, 64), KERNEL(no_syncwarp, 1, 64),
	KERNEL(half_syncwarp, 1, 64), KERNEL(not_awaited, 1, 64),
	KERNEL(awaited_late, 1, 64), KERNEL(left_behind, 1, 32),
	KERNEL(copy_misaligned, 1, 32), KERNEL(row_misaligned, 1, 32),
	KERNEL(few_multiply, 1, 16), KERNEL(two_blocks, 2, 64),
	KERNEL(two_threads, 1, 64), KERNEL(mixed, 2, 64), CALL(run_endless),
	CALL(run_out_of_bounds), CALL(raw), CALL(after_free),
	CALL(freed_twice), CALL(host_written), CALL(host_read),
	CALL(reads_device), CALL(writes_device), CALL(too_many_threads),
	CALL(too_much_shared), CALL(copies_beyond), CALL(copies_wrong_way),
	CALL(no_event), CALL(no_event_back), CALL(event_too_early),
	CALL(two_readers), CALL(default_stream), CALL(copied_early),
};

int main(int argc, char **argv)
{
	cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking);
	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	new_memory(&x);
	new_memory(&y);
	cudaMemsetAsync(x, 0, BYTES, a);
	cudaMemsetAsync(y, 0, BYTES, a);
	cudaStreamSynchronize(a);
	for (auto &bug : bugs) {
		if (argc != 2 || strcmp(argv[1], bug.name) != 0)
			continue;
		if (bug.kernel)
			run(bug.kernel, bug.blocks, bug.threads);
		else
			bug.call();
		cudaDeviceSynchronize();
		return 0;
	}
	fprintf(stderr, "bugs: no such name\n");
	return 2;
}
