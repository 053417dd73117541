/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the head of tests/gpu/run's report: each GPU, and the versions of what
 * the tests compute with. Exits with 0 where there is a GPU.
 */
#include <stdio.h>

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

static void print_gpu(int gpu)
{
	struct cudaDeviceProp properties;

	if (cudaGetDeviceProperties(&properties, gpu) != cudaSuccess) {
		printf("GPU %d: no answer\n", gpu);
		return;
	}
	printf("GPU %d: %s, compute capability %d.%d, %zu MiB, %d "
	       "multiprocessors\n", gpu, properties.name, properties.major,
	       properties.minor, properties.totalGlobalMem >> 20,
	       properties.multiProcessorCount);
}

static void print_cuda(const char *what, int version)
{
	printf("%s %d.%d", what, version / 1000, version % 1000 / 10);
}

/* NCCL counts 2.9 and later as 20900, and cuBLASLt 13.1.0 as 130100. */
static void print_versions(void)
{
	int driver = 0, runtime = 0, nccl = 0;
	size_t products = cublasLtGetVersion();

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	ncclGetVersion(&nccl);
	print_cuda("the driver's CUDA", driver);
	print_cuda(", CUDA", runtime);
	printf(", cuBLASLt %zu.%zu.%zu, NCCL %d.%d.%d\n", products / 10000,
	       products / 100 % 100, products % 100, nccl / 10000,
	       nccl / 100 % 100, nccl % 100);
}

int main(void)
{
	int count = 0;
	cudaError_t failure = cudaGetDeviceCount(&count);

	if (failure != cudaSuccess)
		printf("no GPU: %s\n", cudaGetErrorString(failure));
	for (int gpu = 0; gpu < count; gpu++)
		print_gpu(gpu);
	print_versions();
	return count == 0;
}
