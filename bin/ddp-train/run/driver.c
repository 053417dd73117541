/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the CUDA driver for GPUs. */
#include "run/driver.h"

#include <stdio.h>

#include "nccl/driver.h"

int driver_count_gpus(struct ddp_error *why)
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

void driver_name_gpu(char *name, size_t size)
{
	int device;

	if (ddp_driver.get_current(&device) != DDP_DRIVER_SUCCESS)
		device = 0;
	if (ddp_driver.get_name(name, (int)size, device) != DDP_DRIVER_SUCCESS)
		snprintf(name, size, "unknown");
}
