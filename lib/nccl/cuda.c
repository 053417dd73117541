/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA driver: look it up, and ask it for the GPU and for streams. */
#include "nccl/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "nccl/symbols.h"

/* CUresult, of which only these are told apart. */
enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_READY = 600 };

/* A CUcontext is a void *, a CUdevice an int, a CUstream a void *. */
static struct cuda {
	int (*init)(unsigned int flags);
	int (*get_context)(void **context);
	int (*get_device)(int *device);
	int (*get_uuid)(unsigned char *uuid, int device);
	int (*get_bus_id)(char *text, int room, int device);
	int (*query_stream)(void *stream);
	int (*get_error)(int result, const char **text);
} cuda;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[256];		/* why CUDA cannot be used, or "" */

/* The older of the two for a UUID would name a MIG instance by its GPU. */
static const struct ddp_symbol symbols[] = {
	{ "cuInit", &cuda.init, false },
	{ "cuCtxGetCurrent", &cuda.get_context, false },
	{ "cuCtxGetDevice", &cuda.get_device, false },
	{ "cuDeviceGetUuid", &cuda.get_uuid, true },
	{ "cuDeviceGetUuid_v2", &cuda.get_uuid, true },
	{ "cuDeviceGetPCIBusId", &cuda.get_bus_id, false },
	{ "cuStreamQuery", &cuda.query_stream, false },
	{ "cuGetErrorString", &cuda.get_error, false },
};

static void look_up(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *name;

	if (!lib) {
		snprintf(missing, sizeof(missing), "no GPU: %s", dlerror());
		return;
	}
	name = ddp_symbols_find(lib, symbols,
				sizeof(symbols) / sizeof(symbols[0]));
	if (name)
		snprintf(missing, sizeof(missing), "libcuda.so.1 has no %s: "
			 "it is not that of a CUDA driver", name);
}

static int refuse(struct ddp_error *error, const char *call, int result)
{
	const char *text = NULL;

	if (cuda.get_error(result, &text) != CUDA_SUCCESS || !text)
		text = "unknown error";
	ddp_error_set(error, DDP_ERROR_CUDA, "%s: %s", call, text);
	return ddp_error_set_native(error, result);
}

static int make_ready(struct ddp_error *error)
{
	int result;

	pthread_once(&once, look_up);
	if (*missing != '\0')
		return ddp_error_set(error, DDP_ERROR_CUDA, "%s", missing);
	result = cuda.init(0);
	if (result != CUDA_SUCCESS)
		return refuse(error, "no GPU: cuInit", result);
	return 0;
}

static int identify_gpu(struct ddp_gpu_id *gpu, int device,
			struct ddp_error *error)
{
	char text[32] = "";
	int result;

	if (cuda.get_uuid &&
	    cuda.get_uuid(gpu->bytes, device) == CUDA_SUCCESS) {
		gpu->kind = DDP_GPU_ID_UUID;
		return 0;
	}
	result = cuda.get_bus_id(text, sizeof(text), device);
	if (result != CUDA_SUCCESS)
		return refuse(error, "cuDeviceGetPCIBusId", result);
	text[sizeof(gpu->bytes) - 1] = '\0';
	memcpy(gpu->bytes, text, sizeof(gpu->bytes));
	gpu->kind = DDP_GPU_ID_BUS;
	return 0;
}

int ddp_cuda_get_current(struct ddp_gpu_id *gpu, struct ddp_error *error)
{
	void *context = NULL;
	int device, result;

	memset(gpu, 0, sizeof(*gpu));
	if (make_ready(error) != 0)
		return -1;
	result = cuda.get_context(&context);
	if (result != CUDA_SUCCESS)
		return refuse(error, "cuCtxGetCurrent", result);
	if (!context)
		return ddp_error_set(error, DDP_ERROR_CUDA,
				     "this thread has chosen no GPU: call "
				     "cudaSetDevice first (before CUDA 12, "
				     "cudaFree(0) after it)");
	result = cuda.get_device(&device);
	if (result != CUDA_SUCCESS)
		return refuse(error, "cuCtxGetDevice", result);
	return identify_gpu(gpu, device, error);
}

int ddp_cuda_query_stream(void *stream, struct ddp_error *error)
{
	int result;

	if (make_ready(error) != 0)
		return -1;
	result = cuda.query_stream(stream);
	if (result == CUDA_SUCCESS)
		return 1;
	if (result == CUDA_ERROR_NOT_READY)
		return 0;
	return refuse(error, "what was enqueued to the stream failed", result);
}
