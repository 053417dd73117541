/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU of this process, through the CUDA driver's library. */
#include "device.h"

#include <stdint.h>
#include <stdio.h>

#include "nccl/driver.h"

enum { STREAM_NON_BLOCKING = 1 };

static int device = -1;
static void *stream;

/* Returns 0 for success, or -1 with error set. */
static int ended(const char *what, int result, struct ddp_error *error)
{
	return result == DDP_DRIVER_SUCCESS ? 0 :
	       ddp_driver_fail(what, result, error);
}

static int choose(int local_rank, bool share, int *ordinal,
		  struct ddp_error *error)
{
	int count = 0, result;

	if (ddp_driver_load("there is no GPU for --backend nccl (",
			    "); without one, choose --backend mpi", error) != 0)
		return -1;
	result = ddp_driver.init(0);
	if (result == 0)
		result = ddp_driver.count_devices(&count);
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
	int devices = 0;

	if (ddp_driver_load("there is no NVIDIA driver (", ")", error) != 0 ||
	    ended("cuInit", ddp_driver.init(0), error) < 0 ||
	    ended("cuDeviceGetCount", ddp_driver.count_devices(&devices),
		  error) < 0)
		return -1;
	if (!ddp_driver.get_version || ddp_driver.get_version(version) != 0)
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

	if (choose(local_rank, share, &ordinal, error) < 0 ||
	    ended("cuDeviceGet", ddp_driver.get_device(&chosen, ordinal), error) ||
	    ended("cuDevicePrimaryCtxRetain", ddp_driver.retain(&context, chosen),
		  error))
		return -1;
	device = chosen;
	if (ended("cuCtxSetCurrent", ddp_driver.set_current(context), error) ||
	    ended("cuStreamCreate", ddp_driver.create_stream(&stream,
						       STREAM_NON_BLOCKING),
		  error))
		return -1;
	ddp_driver.get_bus_id(bus_id, sizeof(bus_id), chosen);
	ddp_driver.get_name(model, sizeof(model), chosen);
	snprintf(name, size, "%s %s", bus_id, model);
	return 0;
}

void device_close(void)
{
	if (stream)
		ddp_driver.destroy_stream(stream);
	if (device >= 0)
		ddp_driver.release(device);
	stream = NULL;
	device = -1;
}

void *device_reserve(size_t size, struct ddp_error *error)
{
	uintptr_t memory = 0;
	char what[96];

	snprintf(what, sizeof(what), "the buffers take %zu bytes of the GPU; "
		 "choose a smaller --maxbytes", size);
	if (ended(what, ddp_driver.alloc(&memory, size), error) < 0)
		return NULL;
	return (void *)memory;
}

void device_release(void *memory)
{
	ddp_driver.free((uintptr_t)memory);
}

int device_put(void *memory, const void *from, size_t size,
	       struct ddp_error *error)
{
	return ended("cuMemcpyHtoD", ddp_driver.put((uintptr_t)memory, from, size),
		     error);
}

int device_get(void *to, const void *memory, size_t size,
	       struct ddp_error *error)
{
	return ended("cuMemcpyDtoH", ddp_driver.get(to, (uintptr_t)memory, size),
		     error);
}

void *device_stream(void)
{
	return stream;
}

int device_query(struct ddp_error *error)
{
	int result = ddp_driver.query_stream(stream);

	if (result == DDP_DRIVER_NOT_READY)
		return 0;
	return ended("a collective failed", result, error) == 0 ? 1 : -1;
}
