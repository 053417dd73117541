/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks the CUDA driver up. */
#include "nccl/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "nccl/symbols.h"

struct ddp_driver ddp_driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char loader_words[256];
static const char *missing;

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
	{ "cuDevicePrimaryCtxRetain", &ddp_driver.retain, false },
	{ "cuDevicePrimaryCtxRelease_v2", &ddp_driver.release, false },
	{ "cuCtxSetCurrent", &ddp_driver.set_current, false },
	{ "cuMemAlloc_v2", &ddp_driver.alloc, false },
	{ "cuMemFree_v2", &ddp_driver.free, false },
	{ "cuMemcpyHtoD_v2", &ddp_driver.put, false },
	{ "cuMemcpyDtoH_v2", &ddp_driver.get, false },
	{ "cuStreamCreate", &ddp_driver.create_stream, false },
	{ "cuStreamDestroy_v2", &ddp_driver.destroy_stream, false },
	{ "cuStreamQuery", &ddp_driver.query_stream, false },
	{ "cuGetErrorString", &ddp_driver.get_error, false },
};

static void look_up(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (library)
		missing = ddp_symbols_find(library, symbols, sizeof(symbols) /
					   sizeof(symbols[0]));
	else
		snprintf(loader_words, sizeof(loader_words), "%s", dlerror());
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
