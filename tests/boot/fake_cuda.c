/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libcuda.so.1: a driver with one GPU and streams that are idle, as the
 * environment says, for tests on machines without one.
 *
 *   FAKE_CUDA_GPU=NAME      its UUID is NAME and zeros [that of the rank]
 *   FAKE_CUDA_UUID=no       it has none; its bus id is then NAME
 *   FAKE_CUDA_INIT=CODE     what cuInit returns
 *   FAKE_CUDA_CONTEXT=no    the thread has none
 *   FAKE_CUDA_STREAM=MS     each stream is busy until MS milliseconds after the
 *                           first look at one; "error": reports an error
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned int flags);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDeviceGetPCIBusId(char *text, int room, int device);
int cuStreamQuery(void *stream);
int cuGetErrorString(int result, const char **text);

static int context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *gpu(void)
{
	const char *name = getenv("FAKE_CUDA_GPU");

	if (name == NULL)
		name = getenv("SLURM_PROCID");
	return name != NULL ? name : "0";
}

static int is(const char *variable, const char *text)
{
	const char *value = getenv(variable);

	return value != NULL && strcmp(value, text) == 0;
}

int cuInit(unsigned int flags)
{
	const char *code = getenv("FAKE_CUDA_INIT");

	(void)flags;
	return code != NULL ? atoi(code) : 0;
}

int cuCtxGetCurrent(void **current)
{
	*current = is("FAKE_CUDA_CONTEXT", "no") ? NULL : &context;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	if (is("FAKE_CUDA_UUID", "no"))
		return 801;
	(void)device;
	memset(uuid, 0, 16);
	memcpy(uuid, gpu(), strnlen(gpu(), 16));
	return 0;
}

int cuDeviceGetPCIBusId(char *text, int room, int device)
{
	(void)device;
	snprintf(text, (size_t)room, "%s", gpu());
	return 0;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int cuStreamQuery(void *stream)
{
	static long first;
	const char *busy = getenv("FAKE_CUDA_STREAM");
	long begun;

	(void)stream;
	if (busy == NULL)
		return 0;
	if (strcmp(busy, "error") == 0)
		return 700;
	pthread_mutex_lock(&lock);
	if (first == 0)
		first = now_ms();
	begun = first;
	pthread_mutex_unlock(&lock);
	return now_ms() - begun < atol(busy) ? 600 : 0;
}

int cuGetErrorString(int result, const char **text)
{
	*text = result == 100 ? "no CUDA-capable device is detected" :
		"a fake CUDA error";
	return 0;
}
