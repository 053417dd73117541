/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libcuda.so.1, for tests on machines without a GPU. It is not a driver:
 * its memory is the host's and its streams do nothing; those of the emulated
 * CUDA are asked for what they do (fake_stream.h). A thread that has chosen
 * no GPU has that of its local rank, as if it had been the only one visible.
 *
 *   FAKE_GPUS=N             how many there are [4]; with 0 cuInit fails
 *   FAKE_CUDA_INIT=N        cuInit fails, with N
 *   FAKE_GPU_BYTES=N        the memory of each [64 MiB]
 *   FAKE_CUDA_GPU=NAME      its UUID is NAME and zeros [device and node]
 *   FAKE_CUDA_UUID=no       it has none; NAME is its bus id
 *   FAKE_CUDA_NAME=TEXT     what each is called [Fake]
 *   FAKE_CUDA_CONTEXT=no    the thread has chosen no GPU
 *   FAKE_CUDA_STREAM=MS     each stream is busy until MS milliseconds after the
 *                           first look at one [busy in every other look];
 *                           "error": reports an error
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_stream.h"

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_READY = 600,
	ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801 };

static int current = -1;	/* what cuCtxSetCurrent chose */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *variable(const char *name, const char *otherwise)
{
	const char *text = getenv(name);

	return text ? text : otherwise;
}

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static int device_now(void)
{
	return current >= 0 ? current : (int)number("SLURM_LOCALID", 0);
}

int cuInit(unsigned int flags)
{
	(void)flags;
	if (number("FAKE_GPUS", 4) == 0)
		return NO_DEVICE;
	return (int)number("FAKE_CUDA_INIT", 0);
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = (int)number("FAKE_GPUS", 4);
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
	snprintf(name, (size_t)size, "%s", variable("FAKE_CUDA_NAME", "Fake"));
	return 0;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
	char own[32];

	snprintf(own, sizeof(own), "0000:%02x:00.0", (unsigned int)device);
	snprintf(text, (size_t)size, "%s", variable("FAKE_CUDA_GPU", own));
	return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	char own[32];

	if (strcmp(variable("FAKE_CUDA_UUID", ""), "no") == 0)
		return NOT_SUPPORTED;
	/* The device of another node is another one. */
	snprintf(own, sizeof(own), "%d%.15s", device,
		 variable("SLURMD_NODENAME", ""));
	memset(uuid, 0, 16);
	memcpy(uuid, variable("FAKE_CUDA_GPU", own),
	       strnlen(variable("FAKE_CUDA_GPU", own), 16));
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
	*context = (void *)(uintptr_t)(device_now() + 1);
	if (strcmp(variable("FAKE_CUDA_CONTEXT", ""), "no") == 0)
		*context = NULL;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = device_now();
	return 0;
}

int cuMemAlloc_v2(uintptr_t *memory, size_t size)
{
	if (size > (size_t)number("FAKE_GPU_BYTES", 64 << 20))
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
	static struct fake_stream nothing;

	*stream = &nothing;
	return flags == 1 ? 0 : 1;
}

int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	return 0;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int query_emulated(void *stream)
{
	int done = fake_stream_of(stream)->query(stream);

	return done < 0 ? LAUNCH_FAILED : done ? 0 : NOT_READY;
}

int cuStreamQuery(void *stream)
{
	const char *busy = variable("FAKE_CUDA_STREAM", "");
	static long first, looks;
	int result;

	if (strcmp(busy, "error") == 0)
		return ILLEGAL_ADDRESS;
	if (fake_stream_of(stream))
		return query_emulated(stream);
	pthread_mutex_lock(&lock);
	if (*busy == '\0')
		result = looks++ % 2 ? 0 : NOT_READY;
	else {
		first = first > 0 ? first : now_ms();
		result = now_ms() - first < atol(busy) ? NOT_READY : 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int cuGetErrorString(int result, const char **text)
{
	*text = result == OUT_OF_MEMORY ? "out of memory" :
		result == NO_DEVICE ? "no CUDA-capable device is detected" :
		"a fake CUDA error";
	return 0;
}
