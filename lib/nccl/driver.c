/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks functions up in libraries, and asks the CUDA driver. */
#include "nccl/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "nccl/census.h"

const char *ddp_symbols_find(void *handle, const struct ddp_symbol *symbols,
			     size_t count)
{
	const char *missing = NULL;
	void *address;
	size_t i;

	for (i = 0; i < count; i++) {
		address = dlsym(handle, symbols[i].name);
		/* ISO C does not let a void * become a function pointer. */
		if (address)
			memcpy(symbols[i].function, &address, sizeof(address));
		else if (!missing && !symbols[i].optional)
			missing = symbols[i].name;
	}
	return missing;
}

/* ---- the driver */

struct ddp_driver ddp_driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char loader_words[256];
static const char *missing, *missing_memory;

/* The older of the two for a UUID would name a MIG instance by its GPU. */
static const struct ddp_symbol symbols[] = {
	{ "cuDeviceGetUuid", &ddp_driver.get_uuid, true },
	{ "cuDeviceGetUuid_v2", &ddp_driver.get_uuid, true },
	{ "cuDriverGetVersion", &ddp_driver.get_version, true },
	{ "cuInit", &ddp_driver.init, false },
	{ "cuDeviceGetCount", &ddp_driver.count_devices, false },
	{ "cuDeviceGet", &ddp_driver.get_device, false },
	{ "cuDeviceGetName", &ddp_driver.get_name, false },
	{ "cuDeviceGetPCIBusId", &ddp_driver.get_bus_id, false },
	{ "cuCtxGetCurrent", &ddp_driver.get_context, false },
	{ "cuCtxGetDevice", &ddp_driver.get_current, false },
	{ "cuStreamQuery", &ddp_driver.query_stream, false },
	{ "cuGetErrorString", &ddp_driver.get_error, false },
};

/* The release of a context is the newest of them, of CUDA 11. */
static const struct ddp_symbol memory_symbols[] = {
	{ "cuDevicePrimaryCtxRetain", &ddp_driver.retain, false },
	{ "cuDevicePrimaryCtxRelease_v2", &ddp_driver.release, false },
	{ "cuCtxSetCurrent", &ddp_driver.set_current, false },
	{ "cuMemAlloc_v2", &ddp_driver.alloc, false },
	{ "cuMemFree_v2", &ddp_driver.free, false },
	{ "cuMemcpyHtoD_v2", &ddp_driver.put, false },
	{ "cuMemcpyDtoH_v2", &ddp_driver.get, false },
	{ "cuStreamCreate", &ddp_driver.create_stream, false },
	{ "cuStreamDestroy_v2", &ddp_driver.destroy_stream, false },
};

static void look_up(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		snprintf(loader_words, sizeof(loader_words), "%s", dlerror());
		return;
	}
	missing = ddp_symbols_find(library, symbols, sizeof(symbols) /
				   sizeof(symbols[0]));
	missing_memory = ddp_symbols_find(library, memory_symbols,
					  sizeof(memory_symbols) /
					  sizeof(memory_symbols[0]));
}

int ddp_driver_load(const char *before, const char *after,
		    struct ddp_error *error)
{
	pthread_once(&once, look_up);
	if (missing)
		return ddp_error_set(error, DDP_ERROR_CUDA, "libcuda.so.1 has "
				     "no %s: it is not that of a CUDA driver",
				     missing);
	if (*loader_words == '\0')
		return 0;
	ddp_error_set(error, DDP_ERROR_CUDA, "%s%s%s", before, loader_words,
		      after);
	return 1;
}

int ddp_driver_check_memory(struct ddp_error *error)
{
	return missing_memory ?
		ddp_error_set(error, DDP_ERROR_CUDA, "libcuda.so.1 has no %s: "
			      "install the driver of CUDA 11 or later",
			      missing_memory) : 0;
}

const char *ddp_driver_words(int result)
{
	const char *text = NULL;

	if (ddp_driver.get_error(result, &text) != DDP_DRIVER_SUCCESS || !text)
		text = "unknown error";
	return text;
}

int ddp_driver_fail(const char *call, int result, struct ddp_error *error)
{
	ddp_error_set(error, DDP_ERROR_CUDA, "%s: %s", call,
		      ddp_driver_words(result));
	return ddp_error_set_native(error, result);
}

/* ---- this thread's GPU and streams */

static int make_ready(struct ddp_error *error)
{
	int result;

	if (ddp_driver_load("no GPU: ", "", error) != 0)
		return -1;
	result = ddp_driver.init(0);
	if (result != DDP_DRIVER_SUCCESS)
		return ddp_driver_fail("no GPU: cuInit", result, error);
	return 0;
}

static int identify_gpu(struct ddp_gpu_id *gpu, int device,
			struct ddp_error *error)
{
	char text[32] = "";
	int result;

	if (ddp_driver.get_uuid &&
	    ddp_driver.get_uuid(gpu->bytes, device) == DDP_DRIVER_SUCCESS) {
		gpu->kind = DDP_GPU_ID_UUID;
		return 0;
	}
	result = ddp_driver.get_bus_id(text, sizeof(text), device);
	if (result != DDP_DRIVER_SUCCESS)
		return ddp_driver_fail("cuDeviceGetPCIBusId", result, error);
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
	result = ddp_driver.get_context(&context);
	if (result != DDP_DRIVER_SUCCESS)
		return ddp_driver_fail("cuCtxGetCurrent", result, error);
	if (!context)
		return ddp_error_set(error, DDP_ERROR_CUDA,
				     "this thread has chosen no GPU: call "
				     "cudaSetDevice first (before CUDA 12, "
				     "cudaFree(0) after it)");
	result = ddp_driver.get_current(&device);
	if (result != DDP_DRIVER_SUCCESS)
		return ddp_driver_fail("cuCtxGetDevice", result, error);
	return identify_gpu(gpu, device, error);
}

int ddp_cuda_query_stream(void *stream, struct ddp_error *error)
{
	int result;

	if (make_ready(error) != 0)
		return -1;
	result = ddp_driver.query_stream(stream);
	if (result == DDP_DRIVER_SUCCESS)
		return 1;
	if (result == DDP_DRIVER_NOT_READY)
		return 0;
	return ddp_driver_fail("what was enqueued to the stream failed", result,
			       error);
}
