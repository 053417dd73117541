/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libcuda.so.1, for tests on machines without a GPU: its memory is the
 * host's, its streams say once that they are not done. $FAKE_GPUS: how many
 * there are [4]; $FAKE_GPU_BYTES: the memory that each has [64 MiB].
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2
#define NO_DEVICE 100
#define NOT_READY 600

static int current = -1, asked;

static long variable(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

int cuInit(unsigned int flags)
{
	(void)flags;
	return variable("FAKE_GPUS", 4) > 0 ? 0 : NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = (int)variable("FAKE_GPUS", 4);
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "Fake");
	return 0;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
	snprintf(text, (size_t)size, "0000:%02x:00.0", device);
	return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	memset(uuid, 0, 16);
	uuid[0] = (unsigned char)device;
	/* other nodes have others */
	strncpy((char *)uuid + 1, getenv("SLURMD_NODENAME") ?
		getenv("SLURMD_NODENAME") : "", 15);
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = (void *)(uintptr_t)(device + 1);
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	current = (int)(uintptr_t)context - 1;
	return 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)(uintptr_t)(current + 1);
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = current;
	return 0;
}

int cuMemAlloc_v2(uintptr_t *memory, size_t size)
{
	if (size > (size_t)variable("FAKE_GPU_BYTES", 64 << 20))
		return OUT_OF_MEMORY;
	*memory = (uintptr_t)malloc(size);
	return 0;
}

int cuMemFree_v2(uintptr_t memory)
{
	free((void *)memory);
	return 0;
}

int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t size)
{
	memcpy((void *)to, from, size);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size)
{
	memcpy(to, (void *)from, size);
	return 0;
}

int cuStreamCreate(void **stream, unsigned int flags)
{
	*stream = &asked;
	return flags == 1 ? 0 : 1;
}

int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	return 0;
}

int cuStreamQuery(void *stream)
{
	(void)stream;
	return asked++ % 2 ? 0 : NOT_READY;
}

int cuGetErrorString(int result, const char **text)
{
	*text = result == OUT_OF_MEMORY ? "out of memory" :
		result == NO_DEVICE ? "no CUDA-capable device" : "fake error";
	return 0;
}
