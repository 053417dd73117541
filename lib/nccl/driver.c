/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks functions up in libraries, and asks the CUDA driver, or HIP. */
#include "nccl/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
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

static const char *get_words(const struct ddp_driver *driver, int result)
{
	const char *text = NULL;

	if (driver->get_error(result, &text) != DDP_DRIVER_SUCCESS || !text)
		text = "unknown error";
	return text;
}

static int fail(const struct ddp_driver *driver, const char *call, int result,
		struct ddp_error *error)
{
	ddp_error_set(error, DDP_ERROR_CUDA, "%s: %s", call,
		      get_words(driver, result));
	return ddp_error_set_native(error, result);
}

const char *ddp_driver_words(int result)
{
	return get_words(&ddp_driver, result);
}

int ddp_driver_fail(const char *call, int result, struct ddp_error *error)
{
	return fail(&ddp_driver, call, result, error);
}

/* ---- AMD's runtime */

/*
 * HIP has the functions of CUDA's driver that a communicator needs, by other names
 * (hip/hip_runtime_api.h), and the same two results. Its device is that of the
 * calling thread. It does not tell whether the thread has chosen it.
 */

static struct ddp_driver hip;
static pthread_once_t hip_once = PTHREAD_ONCE_INIT;
static bool has_hip;
static const char *hip_lacks;		/* a function, where it is no use */

static void look_up_hip(void)
{
	static const char *const names[] = {
		"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
	};
	static const struct ddp_symbol of_hip[] = {
		{ "hipInit", &hip.init, false },
		{ "hipDeviceGetPCIBusId", &hip.get_bus_id, false },
		{ "hipGetDevice", &hip.get_current, false },
		{ "hipStreamQuery", &hip.query_stream, false },
		{ "hipDrvGetErrorString", &hip.get_error, false },
	};
	const size_t count = sizeof(names) / sizeof(names[0]);
	void *library = NULL;
	size_t i;

	/* The program's own library comes first. */
	for (i = 0; i < 2 * count && !library; i++)
		library = dlopen(names[i % count], RTLD_NOW | RTLD_LOCAL |
				 (i < count ? RTLD_NOLOAD : 0));
	if (library)
		hip_lacks = ddp_symbols_find(library, of_hip, sizeof(of_hip) /
					     sizeof(of_hip[0]));
	has_hip = library && !hip_lacks;
}

/* ---- this thread's GPU and streams */

static int tell_none(int loaded, int result, struct ddp_error *error)
{
	if (loaded == 0)
		return ddp_driver_fail("no GPU: cuInit", result, error);
	if (hip_lacks)
		return ddp_error_set(error, DDP_ERROR_CUDA, "no GPU: "
				     "libamdhip64.so has no %s: install ROCm "
				     "5.5 or later", hip_lacks);
	ddp_driver_load("no GPU: ", "", error);
	return -1;
}

/*
 * Returns the driver of this process, which is ready; NULL with error set. HIP's words
 * count where there is no CUDA driver: PyTorch packages bring HIP to any machine.
 */
static const struct ddp_driver *make_ready(struct ddp_error *error)
{
	int loaded = ddp_driver_load("", "", NULL);
	int result = loaded == 0 ? ddp_driver.init(0) : DDP_DRIVER_NO_DEVICE;
	int of_hip;

	if (result == DDP_DRIVER_SUCCESS)
		return &ddp_driver;
	if (result == DDP_DRIVER_NO_DEVICE)
		pthread_once(&hip_once, look_up_hip);
	if (result == DDP_DRIVER_NO_DEVICE && has_hip) {
		of_hip = hip.init(0);
		if (of_hip == DDP_DRIVER_SUCCESS)
			return &hip;
		if (loaded != 0) {
			fail(&hip, "no GPU: hipInit", of_hip, error);
			return NULL;
		}
	}
	tell_none(loaded, result, error);
	return NULL;
}

static int identify_gpu(const struct ddp_driver *driver,
			struct ddp_gpu_id *gpu, int device,
			struct ddp_error *error)
{
	char text[32] = "";
	int result;

	if (driver->get_uuid &&
	    driver->get_uuid(gpu->bytes, device) == DDP_DRIVER_SUCCESS) {
		gpu->kind = DDP_GPU_ID_UUID;
		return 0;
	}
	result = driver->get_bus_id(text, sizeof(text), device);
	if (result != DDP_DRIVER_SUCCESS)
		return fail(driver, "the GPU's PCI bus id", result, error);
	text[sizeof(gpu->bytes) - 1] = '\0';
	memcpy(gpu->bytes, text, sizeof(gpu->bytes));
	gpu->kind = DDP_GPU_ID_BUS;
	return 0;
}

static int check_context(struct ddp_error *error)
{
	void *context = NULL;
	int result = ddp_driver.get_context(&context);

	if (result != DDP_DRIVER_SUCCESS)
		return ddp_driver_fail("cuCtxGetCurrent", result, error);
	return context ? 0 :
		ddp_error_set(error, DDP_ERROR_CUDA, "this thread has chosen "
			      "no GPU: call cudaSetDevice first (before CUDA "
			      "12, cudaFree(0) after it)");
}

int ddp_cuda_get_current(struct ddp_gpu_id *gpu, struct ddp_error *error)
{
	const struct ddp_driver *driver = make_ready(error);
	int device, result;

	memset(gpu, 0, sizeof(*gpu));
	if (!driver || (driver == &ddp_driver && check_context(error) < 0))
		return -1;
	result = driver->get_current(&device);
	if (result != DDP_DRIVER_SUCCESS)
		return fail(driver, driver == &hip ? "hipGetDevice" :
			    "cuCtxGetDevice", result, error);
	return identify_gpu(driver, gpu, device, error);
}

int ddp_cuda_query_stream(void *stream, struct ddp_error *error)
{
	const struct ddp_driver *driver = make_ready(error);
	int result;

	if (!driver)
		return -1;
	result = driver->query_stream(stream);
	if (result == DDP_DRIVER_SUCCESS)
		return 1;
	if (result == DDP_DRIVER_NOT_READY)
		return 0;
	return fail(driver, "what was enqueued to the stream failed", result,
		    error);
}
