/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks the CUDA driver up and asks it for GPUs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "run/driver.h"
#include "util/error.h"

/* A CUdevice is an int, and a CUresult an int that is 0 for success. */
struct driver {
	int (*init)(unsigned int flags);
	int (*count_devices)(int *count);
	int (*get_current)(int *device);
	int (*get_name)(char *name, int size, int device);
	int (*get_error)(int result, const char **text);
};

/* ISO C has no cast for what dlsym() gives. */
static bool find(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	return *(void **)function != NULL;
}

enum { NO_DEVICE = 100 };	/* cuInit: there is a driver and no GPU */

/* Opens the library, which stays loaded. */
static void *open_library(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* Returns 0, or -1 with error set. */
static int look_up(struct driver *driver, struct ddp_error *error)
{
	void *library = open_library();
	const struct { const char *name; void *function; } rows[] = {
		{ "cuInit", &driver->init },
		{ "cuDeviceGetCount", &driver->count_devices },
		{ "cuCtxGetDevice", &driver->get_current },
		{ "cuDeviceGetName", &driver->get_name },
		{ "cuGetErrorString", &driver->get_error }
	};

	if (!library)
		return ddp_error_set(error, DDP_ERROR_CUDA, "there is no CUDA "
				     "driver (%s)", dlerror());
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!find(library, rows[i].name, rows[i].function))
			return ddp_error_set(error, DDP_ERROR_CUDA,
					     "libcuda.so.1 has no %s: it is "
					     "not that of a CUDA driver",
					     rows[i].name);
	return 0;
}

int driver_count_gpus(struct ddp_error *why)
{
	struct driver driver;
	const char *text = NULL;
	int count = 0, result;

	if (look_up(&driver, why) < 0)
		return open_library() ? -1 : 0;
	result = driver.init(0);
	if (result == 0)
		result = driver.count_devices(&count);
	if (result == 0 && count > 0)
		return count;
	if (result != 0 && (driver.get_error(result, &text) != 0 || !text))
		text = "unknown error";
	if (result != 0 && result != NO_DEVICE)
		return ddp_error_set(why, DDP_ERROR_CUDA, "the CUDA driver "
				     "cannot be used (%s)", text);
	ddp_error_set(why, DDP_ERROR_CUDA, "there is no GPU (%s)", text ? text :
		      "the CUDA driver sees none");
	return 0;
}

void driver_name_gpu(char *name, size_t size)
{
	struct driver driver;
	int device;

	snprintf(name, size, "unknown");
	if (look_up(&driver, NULL) < 0)
		return;
	if (driver.get_current(&device) != 0)
		device = 0;
	if (driver.get_name(name, (int)size, device) != 0)
		snprintf(name, size, "unknown");
}
