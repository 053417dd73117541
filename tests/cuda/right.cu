/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is right, and whose results are known: the emulator is to be silent.
 * It exits with 1 where a result is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include "gpu.h"

enum { N = 1024, TILE = 16, PITCH = 24 };	/* values from row to row */

static int wrong;

static void expect(bool ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "right: %s\n", what);
	wrong |= !ok;
}

/* ---- warps: sums of both widths, votes, and a part of a warp */

__global__ void sums(const float *x, float *one, double *two, unsigned *vote)
{
	float v = x[threadIdx.x], s = warp_sum(v), m = warp_max(v);
	double d = warp_sum((double)v * 1e9);

	if (threadIdx.x % 32 == 0) {
		one[threadIdx.x / 32] = s + m;
		two[threadIdx.x / 32] = d;
		vote[threadIdx.x / 32] = 0;
	}
	__syncwarp();
	unsigned odd = __ballot_sync(~0u, threadIdx.x & 1);
	if (threadIdx.x % 32 == 7)
		vote[threadIdx.x / 32] += odd;
}

static void test_sums(cudaStream_t stream, const float *x, const float *host)
{
	float *one, got_one[2], sum = 0, most = 0;
	double *two, got_two[2];
	unsigned *vote, got_vote[2];

	cudaMalloc(&one, 8);
	cudaMalloc(&two, 16);
	cudaMalloc(&vote, 8);
	launch(stream, 1, 64, 0, sums, x, one, two, vote);
	cudaMemcpyAsync(got_one, one, 8, cudaMemcpyDeviceToHost, stream);
	cudaMemcpyAsync(got_two, two, 16, cudaMemcpyDeviceToHost, stream);
	cudaMemcpyAsync(got_vote, vote, 8, cudaMemcpyDeviceToHost, stream);
	for (int i = 32; i < 64; i++) {
		sum += host[i];
		most = fmaxf(most, host[i]);
	}
	expect(fabsf(got_one[1] - sum - most) < 1e-5f, "a sum of floats");
	expect(fabs(got_two[1] - sum * 1e9) < 1e4, "a sum of doubles");
	expect(got_vote[0] == 0xaaaaaaaa && got_vote[1] == 0xaaaaaaaa,
	       "a vote");
}

/* ---- a product of tiles by cp.async, ldmatrix and mma */

template <class T>
__global__ void multiply(const T *a, const T *b, float *c)
{
	T *sa = (T *)dynamic_shared(), *sb = sa + TILE * PITCH;
	uint32_t fa[4], fb[4];
	float d[2][4] = {};
	int lane = (int)threadIdx.x, row = lane / 2, half = lane % 2 * 8;

	cp_async16(sa + row * PITCH + half, a + row * TILE + half, true);
	cp_async_commit();
	cp_async16(sb + row * PITCH + half, b + row * TILE + half, row < 12);
	cp_async_commit();
	cp_async_wait<0>();
	__syncwarp();
	ldmatrix4(fa, sa + lane % 16 * PITCH + lane / 16 * 8);
	ldmatrix4_trans(fb, sb + lane % 16 * PITCH + lane / 16 * 8);
	for (int n = 0; n < 2; n++) {
		uint32_t pair[2] = { fb[2 * n], fb[2 * n + 1] };

		mma(d[n], fa, pair, T());
		for (int i = 0; i < 4; i++)
			c[(lane / 4 + i / 2 * 8) * TILE + n * 8 + lane % 4 * 2 +
			  i % 2] = d[n][i];
	}
}

template <class T> static void test_multiply(cudaStream_t stream)
{
	T a[TILE * TILE], b[TILE * TILE], *da, *db;
	float c[TILE * TILE], *dc;

	for (int i = 0; i < TILE * TILE; i++) {
		a[i] = narrow<T>((float)(i * 7 % 13 - 6));
		b[i] = narrow<T>((float)(i * 5 % 11 - 5) / 4);
	}
	cudaMalloc(&da, sizeof(a));
	cudaMalloc(&db, sizeof(b));
	cudaMalloc(&dc, sizeof(c));
	cudaMemcpyAsync(da, a, sizeof(a), cudaMemcpyHostToDevice, stream);
	cudaMemcpyAsync(db, b, sizeof(b), cudaMemcpyHostToDevice, stream);
	launch(stream, 1, 32, 2 * TILE * PITCH * sizeof(T), multiply<T>, da,
	       db, dc);
	cudaMemcpyAsync(c, dc, sizeof(c), cudaMemcpyDeviceToHost, stream);
	for (int i = 0; i < TILE; i++)
		for (int j = 0; j < TILE; j++) {
			float sum = 0;

			for (int k = 0; k < 12; k++)	/* others are zeros */
				sum += widen(a[i * TILE + k]) *
					widen(b[k * TILE + j]);
			expect(c[i * TILE + j] == sum, "a product of tiles");
		}
}

/* ---- a block: barriers, static and dynamic shared memory */

__device__ float *scratch(void)
{
	__shared__ float room[64];

	return room;
}

__global__ void reverse(const float *x, float *y, int rounds)
{
	float *s = (float *)dynamic_shared(), *t = scratch();
	float v = x[blockIdx.x * 64 + threadIdx.x];

	for (int i = 0; i < rounds; i++) {
		s[threadIdx.x] = v;
		__syncthreads();
		t[threadIdx.x] = s[63 - threadIdx.x];
		__syncthreads();
		v = t[63 - threadIdx.x];
	}
	y[blockIdx.x * 64 + 63 - threadIdx.x] = v;
}

__global__ void add(float *y, const float *x, float factor)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	y[i] += x[i] * factor;
}

__global__ void count(int *sum) { atomicAdd(sum, 1); }

/* Two streams, one event each way; both read x at once. */
static void test_streams(cudaStream_t a, cudaStream_t b, float *x,
			 const float *host)
{
	float *y, *z, *pinned, ms = -1;
	cudaEvent_t begin, end, ready;

	cudaMalloc(&y, N * 4);
	cudaMalloc(&z, N * 4);
	cudaMallocHost(&pinned, N * 4);
	cudaEventCreate(&begin);
	cudaEventCreate(&end);
	cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
	cudaEventRecord(begin, a);
	launch(a, N / 64, 64, 256, reverse, x, y, 3);
	cudaMemcpyAsync(z, x, N * 4, cudaMemcpyDeviceToDevice, b);
	cudaEventRecord(ready, a);
	cudaStreamWaitEvent(b, ready, 0);
	launch(b, N / 64, 64, 0, add, z, y, 2.f);
	cudaEventRecord(end, b);
	cudaStreamWaitEvent(a, end, 0);
	cudaMemsetAsync(x, 0, N * 4, a);
	cudaMemcpyAsync(pinned, z, N * 4, cudaMemcpyDeviceToHost, b);
	cudaEventRecord(ready, b);
	while (cudaEventQuery(ready) == cudaErrorNotReady)
		;
	for (int i = 0; i < N; i++)
		expect(pinned[i] == host[i] + 2 * host[i / 64 * 64 + 63 -
						       i % 64], "two streams");
	cudaStreamSynchronize(b);
	expect(cudaEventElapsedTime(&ms, begin, end) == cudaSuccess && ms >= 0,
	       "elapsed time");
	expect(cudaEventElapsedTime(&ms, ready, end) ==
	       cudaErrorInvalidResourceHandle, "an event without time");
}

static void test_count(cudaStream_t stream)
{
	int *sum, got;

	cudaMalloc(&sum, 4);
	cudaMemsetAsync(sum, 0, 4, stream);
	launch(stream, 3, 64, 0, count, sum);
	cudaMemcpyAsync(&got, sum, 4, cudaMemcpyDeviceToHost, stream);
	expect(got == 192, "atomics");
}

static void test_memory(void)
{
	size_t before, after, all;
	void *p;

	cudaMemGetInfo(&before, &all);
	expect(cudaMalloc(&p, all) == cudaErrorMemoryAllocation && !p,
	       "too much memory");
	expect(cudaGetLastError() == cudaErrorMemoryAllocation &&
	       cudaGetLastError() == cudaSuccess, "the last error");
	cudaMalloc(&p, 1 << 20);
	cudaMemGetInfo(&after, &all);
	expect(before - after == 1 << 20, "what is free");
	cudaFree(p);
	cudaMemGetInfo(&after, &all);
	expect(before == after, "what is free again");
}

int main(void)
{
	cudaStream_t a, b;
	float host[N], *x;

	for (int i = 0; i < N; i++)
		host[i] = (float)(i % 97);
	cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
	cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, -1);
	cudaMalloc(&x, sizeof(host));
	cudaMemcpyAsync(x, host, sizeof(host), cudaMemcpyHostToDevice, a);
	test_sums(a, x, host);
	test_multiply<__nv_bfloat16>(a);
	test_multiply<__half>(a);
	test_count(a);
	test_streams(a, b, x, host);
	test_memory();
	cudaDeviceSynchronize();
	return wrong;
}
