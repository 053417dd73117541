/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU of this process, through the CUDA driver's library. */
#include "device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "nccl/symbols.h"

enum { CUDA_ERROR_NOT_READY = 600, STREAM_NON_BLOCKING = 1 };

/*
 * A CUcontext and a CUstream are a void *, a CUdevice is an int, and a
 * CUdeviceptr an integer of a pointer's size. A CUresult is an int that is 0
 * for success.
 */
static struct {
	int (*init)(unsigned int flags);
	int (*count_devices)(int *count);
	int (*get_device)(int *device, int ordinal);
	int (*get_name)(char *name, int size, int device);
	int (*get_bus_id)(char *text, int size, int device);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*alloc)(uintptr_t *memory, size_t size);
	int (*free)(uintptr_t memory);
	int (*put)(uintptr_t to, const void *from, size_t size);
	int (*get)(void *to, uintptr_t from, size_t size);
	int (*create_stream)(void **stream, unsigned int flags);
	int (*destroy_stream)(void *stream);
	int (*query_stream)(void *stream);
	int (*get_error)(int result, const char **text);
} cuda;

static const struct ddp_symbol symbols[] = {
	{ "cuInit", &cuda.init, false },
	{ "cuDeviceGetCount", &cuda.count_devices, false },
	{ "cuDeviceGet", &cuda.get_device, false },
	{ "cuDeviceGetName", &cuda.get_name, false },
	{ "cuDeviceGetPCIBusId", &cuda.get_bus_id, false },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain, false },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.release, false },
	{ "cuCtxSetCurrent", &cuda.set_current, false },
	{ "cuMemAlloc_v2", &cuda.alloc, false },
	{ "cuMemFree_v2", &cuda.free, false },
	{ "cuMemcpyHtoD_v2", &cuda.put, false },
	{ "cuMemcpyDtoH_v2", &cuda.get, false },
	{ "cuStreamCreate", &cuda.create_stream, false },
	{ "cuStreamDestroy_v2", &cuda.destroy_stream, false },
	{ "cuStreamQuery", &cuda.query_stream, false },
	{ "cuGetErrorString", &cuda.get_error, false }
};

static int device = -1;
static void *stream;

static int look_up(struct ddp_error *error)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (!lib)
		return ddp_error_set(error, DDP_ERROR_CUDA, "there is no GPU "
				     "for --backend nccl (%s); without one, "
				     "choose --backend mpi", dlerror());
	missing = ddp_symbols_find(lib, symbols,
				   sizeof(symbols) / sizeof(*symbols));
	if (missing)
		return ddp_error_set(error, DDP_ERROR_CUDA, "libcuda.so.1 has "
				     "no %s: it is not that of a CUDA driver",
				     missing);
	return 0;
}

/* Returns 0 for success, or -1 with error set. */
static int ended(const char *what, int result, struct ddp_error *error)
{
	const char *text = NULL;

	if (result == 0)
		return 0;
	if (cuda.get_error(result, &text) != 0 || !text)
		text = "unknown error";
	ddp_error_set(error, DDP_ERROR_CUDA, "%s: %s", what, text);
	if (error)
		error->native = result;
	return -1;
}

static int choose(int local_rank, bool share, int *ordinal,
		  struct ddp_error *error)
{
	int count = 0, result = cuda.init(0);

	if (result == 0)
		result = cuda.count_devices(&count);
	if (ended("there is no GPU for --backend nccl", result, error) < 0)
		return -1;
	if (count == 0)
		return ddp_error_set(error, DDP_ERROR_CUDA, "there is no GPU "
				     "for --backend nccl; without one, choose "
				     "--backend mpi");
	if (count > 1 && local_rank >= count && !share)
		return ddp_error_set(error, DDP_ERROR_CUDA, "local rank %d "
				     "finds only %d GPUs; start one rank a "
				     "GPU, or test with --share-gpu",
				     local_rank, count);
	*ordinal = local_rank % count;
	return 0;
}

int device_count(uint32_t *count, int *version, struct ddp_error *error)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *version) = NULL;
	int devices = 0;

	if (!lib)
		return ddp_error_set(error, DDP_ERROR_CUDA, "there is no "
				     "NVIDIA driver (%s)", dlerror());
	if (look_up(error) < 0 ||
	    ended("cuInit", cuda.init(0), error) < 0 ||
	    ended("cuDeviceGetCount", cuda.count_devices(&devices), error) < 0)
		return -1;
	*(void **)&get_version = dlsym(lib, "cuDriverGetVersion");
	if (!get_version || get_version(version) != 0)
		*version = 0;
	*count = (uint32_t)devices;
	return 0;
}

int device_open(int local_rank, bool share, char *name, size_t size,
		struct ddp_error *error)
{
	char bus_id[32] = "", model[64] = "";
	void *context;
	int ordinal = 0, chosen;

	if (look_up(error) < 0 ||
	    choose(local_rank, share, &ordinal, error) < 0 ||
	    ended("cuDeviceGet", cuda.get_device(&chosen, ordinal), error) ||
	    ended("cuDevicePrimaryCtxRetain", cuda.retain(&context, chosen),
		  error))
		return -1;
	device = chosen;
	if (ended("cuCtxSetCurrent", cuda.set_current(context), error) ||
	    ended("cuStreamCreate", cuda.create_stream(&stream,
						       STREAM_NON_BLOCKING),
		  error))
		return -1;
	cuda.get_bus_id(bus_id, sizeof(bus_id), chosen);
	cuda.get_name(model, sizeof(model), chosen);
	snprintf(name, size, "%s %s", bus_id, model);
	return 0;
}

void device_close(void)
{
	if (stream)
		cuda.destroy_stream(stream);
	if (device >= 0)
		cuda.release(device);
	stream = NULL;
	device = -1;
}

void *device_reserve(size_t size, struct ddp_error *error)
{
	uintptr_t memory = 0;
	char what[96];

	snprintf(what, sizeof(what), "the buffers take %zu bytes of the GPU; "
		 "choose a smaller --maxbytes", size);
	if (ended(what, cuda.alloc(&memory, size), error) < 0)
		return NULL;
	return (void *)memory;
}

void device_release(void *memory)
{
	cuda.free((uintptr_t)memory);
}

int device_put(void *memory, const void *from, size_t size,
	       struct ddp_error *error)
{
	return ended("cuMemcpyHtoD", cuda.put((uintptr_t)memory, from, size),
		     error);
}

int device_get(void *to, const void *memory, size_t size,
	       struct ddp_error *error)
{
	return ended("cuMemcpyDtoH", cuda.get(to, (uintptr_t)memory, size),
		     error);
}

void *device_stream(void)
{
	return stream;
}

int device_query(struct ddp_error *error)
{
	int result = cuda.query_stream(stream);

	if (result == CUDA_ERROR_NOT_READY)
		return 0;
	return ended("a collective failed", result, error) == 0 ? 1 : -1;
}
