/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the CUDA driver for the GPU and for streams. */
#include "nccl/cuda.h"

#include <string.h>

#include "nccl/driver.h"

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
	return ddp_driver_fail("what was enqueued to the stream failed", result, error);
}
