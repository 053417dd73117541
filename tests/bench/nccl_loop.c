/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_loop FILE BYTES CALLS: what ddp-bench is compared with, all-reduces of
 * NCCL in a loop and nothing else, of a communicator that blocks. mpirun starts a
 * rank a GPU; they meet by FILE, in which rank 0 leaves the unique id. It prints
 * the microseconds of a call in place, the mean of the ranks', as ddp-bench does.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <nccl.h>

enum { WARMUP = 5, PATIENCE = 60 };

static int rank, size;
static CUstream stream;
static CUdeviceptr memory;
static ncclComm_t comm;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "nccl_loop: rank %d: %s: %s\n", rank, what, why);
	exit(1);
}

static void cuda(CUresult result, const char *what)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	die(what, text ? text : "unknown error");
}

static void nccl(ncclResult_t result, const char *what)
{
	if (result != ncclSuccess)
		die(what, ncclGetErrorString(result));
}

static int number(const char *name)
{
	const char *text = getenv(name);

	if (!text)
		die(name, "mpirun sets it; start this by mpirun");
	return atoi(text);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* A new name is given once the file is whole. */
static void give_id(const char *path, ncclUniqueId *id)
{
	char part[4096];
	FILE *file;

	nccl(ncclGetUniqueId(id), "ncclGetUniqueId");
	snprintf(part, sizeof(part), "%s.part", path);
	file = fopen(part, "wb");
	if (!file || fwrite(id, sizeof(*id), 1, file) != 1 ||
	    fclose(file) != 0 || rename(part, path) != 0)
		die(path, "cannot be written");
}

static void take_id(const char *path, ncclUniqueId *id)
{
	double begin = now();
	FILE *file;

	while (!(file = fopen(path, "rb"))) {
		if (now() - begin > PATIENCE)
			die(path, "did not come");
		usleep(10000);
	}
	if (fread(id, sizeof(*id), 1, file) != 1)
		die(path, "is too short");
	fclose(file);
}

static void choose_gpu(void)
{
	int count = 0, local = number("OMPI_COMM_WORLD_LOCAL_RANK");
	CUcontext context;
	CUdevice device;

	cuda(cuInit(0), "cuInit");
	cuda(cuDeviceGetCount(&count), "cuDeviceGetCount");
	cuda(cuDeviceGet(&device, count > local ? local : 0), "cuDeviceGet");
	cuda(cuDevicePrimaryCtxRetain(&context, device),
	     "cuDevicePrimaryCtxRetain");
	cuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
	     "cuStreamCreate");
}

static void wait_for_stream(void)
{
	CUresult result;

	while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		;
	cuda(result, "cuStreamQuery");
}

static void reduce(size_t count, int calls)
{
	for (int i = 0; i < calls; i++)
		nccl(ncclAllReduce((void *)memory, (void *)memory, count,
				   ncclFloat, ncclSum, comm, stream),
		     "ncclAllReduce");
	wait_for_stream();
}

/* The mean of the ranks', by the communicator itself. */
static double average(double value)
{
	float mine = (float)value;

	cuda(cuMemcpyHtoD(memory, &mine, sizeof(mine)), "cuMemcpyHtoD");
	reduce(1, 1);
	cuda(cuMemcpyDtoH(&mine, memory, sizeof(mine)), "cuMemcpyDtoH");
	return (double)mine / size;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	int calls = argc == 4 ? atoi(argv[3]) : 0;
	ncclUniqueId id;
	double begin;

	if (bytes < sizeof(float) || calls < 1)
		die("usage", "nccl_loop FILE BYTES CALLS");
	rank = number("OMPI_COMM_WORLD_RANK");
	size = number("OMPI_COMM_WORLD_SIZE");
	choose_gpu();
	if (rank == 0)
		give_id(argv[1], &id);
	else
		take_id(argv[1], &id);
	nccl(ncclCommInitRank(&comm, size, id, rank), "ncclCommInitRank");
	cuda(cuMemAlloc(&memory, bytes), "cuMemAlloc");
	reduce(bytes / sizeof(float), WARMUP);
	begin = now();
	reduce(bytes / sizeof(float), calls);
	begin = average((now() - begin) / calls * 1e6);
	if (rank == 0)
		printf("%.3f\n", begin);
	nccl(ncclCommFinalize(comm), "ncclCommFinalize");
	if (ncclCommDestroy(comm) != ncclSuccess)
		die("ncclCommDestroy", "has failed");
	return 0;
}
