/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the device of a run, and loads the module of GPUs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/sizes.h"
#include "data/path_code.h"
#include "device.h"
#include "nccl/driver.h"
#include "run/module.h"
#include "run/train_options.h"
#include "run/world.h"
#include "util/error.h"

static const char file[] = "ddp_cuda.so", symbol[] = "ddp_device_table";

/*
 * How many GPUs this process sees. 0 if there is no driver or no GPU, -1 if the
 * driver cannot be used, with why set to the reason.
 */
static int count_gpus(struct ddp_error *why)
{
	int count = 0, result = ddp_driver_load("there is no CUDA driver (",
						")", why);

	if (result != 0)
		return result > 0 ? 0 : -1;
	result = ddp_driver.init(0);
	if (result == DDP_DRIVER_SUCCESS)
		result = ddp_driver.count_devices(&count);
	if (result == DDP_DRIVER_SUCCESS && count > 0)
		return count;
	if (result != DDP_DRIVER_SUCCESS && result != DDP_DRIVER_NO_DEVICE)
		return ddp_error_set(why, DDP_ERROR_CUDA, "the CUDA driver "
				     "cannot be used (%s)",
				     ddp_driver_words(result));
	ddp_error_set(why, DDP_ERROR_CUDA, "there is no GPU (%s)",
		      result ? ddp_driver_words(result) :
		      "the CUDA driver sees none");
	return 0;
}

void module_name_gpu(char *name, size_t size)
{
	int device;

	if (ddp_driver.get_current(&device) != DDP_DRIVER_SUCCESS)
		device = 0;
	if (ddp_driver.get_name(name, (int)size, device) != DDP_DRIVER_SUCCESS)
		snprintf(name, size, "unknown");
}

/* The gradients of a GPU are in its memory, where MPI does not sum them. */
static int check_backend(const struct options *options, struct ddp_error *error)
{
	bool cuda = options->device == COMPUTE_CUDA;

	if (cuda && options->backend == BACKEND_MPI)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--backend mpi "
				     "sums gradients in the host's memory, and "
				     "does not go with --device cuda; use "
				     "--backend nccl, or --device cpu");
	if (!cuda && options->backend == BACKEND_NCCL)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--backend "
				     "nccl sums gradients in the memory of "
				     "GPUs, and does not go with --device "
				     "cpu; use --backend mpi");
	return 0;
}

int module_choose_device(struct options *options, struct ddp_error *error)
{
	enum compute asked = options->device;
	struct ddp_error why;
	int gpus;

	if (asked != COMPUTE_AUTO && check_backend(options, error) < 0)
		return -1;
	if (asked == COMPUTE_CPU)
		return 0;
	gpus = count_gpus(&why);
	if (gpus > 0) {
		options->device = COMPUTE_CUDA;
		return check_backend(options, error);
	}
	if (asked == COMPUTE_CUDA && !options->gpu)
		return ddp_error_set(error, DDP_ERROR_CUDA, "--device cuda: "
				     "%s; ask for a node with a GPU and its "
				     "driver (srun --gres=gpu:1), or use "
				     "--device cpu", why.text);
	if (gpus < 0 && !options->gpu) {
		/* Other ranks may have a GPU, and are to hear of the error. */
		options->device = COMPUTE_CUDA;
		return ddp_error_set(error, DDP_ERROR_CUDA, "%s; repair it, or "
				     "train without GPUs by --device cpu",
				     why.text);
	}
	options->device = COMPUTE_CPU;
	if (options->backend == BACKEND_NCCL)
		return ddp_error_set(error, DDP_ERROR_CUDA, "--backend nccl "
				     "needs a GPU: %s; use --backend mpi",
				     why.text);
	return 0;
}

/* Returns 0, or -1 with error set where there is no such path. */
static int find_path(char path[PATH_MAX], struct ddp_error *error)
{
	const char *folder = getenv("DDP_MODULE_DIR");

	if (!folder || !*folder)
		folder = DDP_TRAIN_MODULE_DIR;
	if (snprintf(path, PATH_MAX, "%s/%s", folder, file) >= PATH_MAX)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "DDP_MODULE_DIR "
				     "is longer than a path can be; unset it");
	if (access(path, F_OK) == 0)
		return 0;
	return ddp_error_set(error, find_path_code(errno), "there is a GPU, "
			     "but not the module for it, %s: %s; install that "
			     "part of slurm-ddp, name its folder by "
			     "DDP_MODULE_DIR, or use --device cpu", path,
			     strerror(errno));
}

static const struct device_table *load(const char *path,
				       struct ddp_error *error)
{
	const struct device_table *table;
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!module) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "the module for GPUs "
			      "cannot be loaded: %s; see that the libraries "
			      "of its CUDA Toolkit are on this node and in "
			      "LD_LIBRARY_PATH, or use --device cpu",
			      dlerror());
		return NULL;
	}
	table = dlsym(module, symbol);
	if (!table) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "%s is no module of "
			      "ddp-train: it has no %s; look at "
			      "DDP_MODULE_DIR, or use --device cpu", path,
			      symbol);
		return NULL;
	}
	if (world_check_abi(path, DEVICE_ABI, table->abi, error) < 0)
		return NULL;
	return table;
}

const struct device_table *module_find_device(const struct options *options,
					      struct ddp_error *error)
{
	char path[PATH_MAX];

	if (options->device != COMPUTE_CUDA)
		return &device_cpu;
	if (find_path(path, error) < 0)
		return NULL;
	return load(path, error);
}

const struct device_table *module_find_planned(const struct options *options,
					       struct ddp_error *error)
{
	/* All that a plan asks of the module, which may not be here. */
	static const struct device_table planned = {
		.abi = DEVICE_ABI, .name = "cuda",
		.check_shape = sizes_check_shape,
		.work_bytes = sizes_count_work, .own_bytes = sizes_count_own
	};

	return options->gpu ? &planned : module_find_device(options, error);
}
