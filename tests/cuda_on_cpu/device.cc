/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's runtime: errors, and what the device is.
 *
 *   EMU_DEVICES=N       GPUs [1]
 *   EMU_NAME=TEXT       their name [Emulated GPU]
 *   EMU_CC=M.N          their compute capability [9.0]
 *   EMU_DRIVER=N        the driver's version, 13000 being 13.0 [the runtime's];
 *                       with 0 there is none; an old one is refused
 *   EMU_LOST=N[:CODE]   from launch N on every call fails so [719]
 */
#include <stdio.h>
#include <stdlib.h>
#include "emu.h"

static cudaError_t last_error, sticky;

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

static const struct { cudaError_t code; const char *name, *text; } errors[] = {
#define ERROR(name, text) { name, #name, text }
	ERROR(cudaSuccess, "no error"),
	ERROR(cudaErrorInvalidValue, "invalid argument"),
	ERROR(cudaErrorMemoryAllocation, "out of memory"),
	ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
	ERROR(cudaErrorInsufficientDriver, "CUDA driver version is "
	      "insufficient for CUDA runtime version"),
	ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
	ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
	ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available "
	      "for execution on the device"),
	ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error "
	      "encountered"),
	ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ERROR(cudaErrorNotReady, "device not ready"),
	ERROR(cudaErrorIllegalAddress, "an illegal memory access was "
	      "encountered"),
	ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
	ERROR(cudaErrorNotSupported, "operation not supported"),
	ERROR(cudaErrorUnknown, "unknown error"),
#undef ERROR
};

cudaError_t emu_fail(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

cudaError_t emu_failure(void) { return emu_fail(sticky); }

void emu_fail_unseen(int error) { sticky = (cudaError_t)error; }

cudaError_t emu_driver_error(void)
{
	long version = number("EMU_DRIVER", CUDART_VERSION);

	emu_start();
	if (version / 1000 < CUDART_VERSION / 1000)
		return emu_fail(cudaErrorInsufficientDriver);
	if (number("EMU_DEVICES", 1) < 1)
		return emu_fail(cudaErrorNoDevice);
	return emu_failure();
}

void emu_count_launch(void)
{
	static long left = number("EMU_LOST", -1);
	const char *text = getenv("EMU_LOST"), *code;

	if (left < 0 || left-- > 0)
		return;
	left = 0;
	code = text ? strchr(text, ':') : NULL;
	sticky = emu_fail(code ? (cudaError_t)atoi(code + 1) :
			  cudaErrorLaunchFailure);
}

static int capability(int minor)
{
	const char *text = getenv("EMU_CC");

	text = text ? text : "9.0";
	return minor ? text[strcspn(text, ".")] ?
		atoi(text + strcspn(text, ".") + 1) : 0 : atoi(text);
}

/* As the CUDA programming guide's table of compute capabilities has it */
int emu_shared_limit(void)
{
	if (capability(0) == 8)
		return (capability(1) == 0 || capability(1) == 7 ? 163 : 99) <<
		       10;
	return capability(0) == 12 ? 99 << 10 : EMU_SHARED;
}

extern "C" {
const char *cudaGetErrorName(cudaError_t error)
{
	for (auto &e : errors)
		if (e.code == error)
			return e.name;
	return "cudaErrorOther";
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (auto &e : errors)
		if (e.code == error)
			return e.text;
	return "an error that the emulator does not name";
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = cudaPeekAtLastError();

	last_error = cudaSuccess;
	return error;
}

/* ---- the device */

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = (int)number("EMU_DEVICES", 1);
	return emu_driver_error();
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = emu_driver_error();

	if (error == cudaSuccess &&
	    (device < 0 || device >= number("EMU_DEVICES", 1)))
		error = cudaErrorInvalidDevice;
	return emu_fail(error);
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return emu_driver_error();
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = (int)number("EMU_DRIVER", CUDART_VERSION);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr attribute, int)
{
	switch (attribute) {
	case cudaDevAttrComputeCapabilityMajor: *v = capability(0); break;
	case cudaDevAttrComputeCapabilityMinor: *v = capability(1); break;
	/* Few, so that loops over blocks are taken */
	case cudaDevAttrMultiProcessorCount: *v = 4; break;
	case cudaDevAttrMaxSharedMemoryPerBlockOptin:
		*v = emu_shared_limit(); break;
	case cudaDevAttrMaxSharedMemoryPerBlock: *v = 48 << 10; break;
	case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
		*v = 228 << 10; break;
	case cudaDevAttrMaxThreadsPerBlock: *v = EMU_THREADS; break;
	case cudaDevAttrMaxThreadsPerMultiProcessor: *v = 2048; break;
	case cudaDevAttrWarpSize: *v = 32; break;
	case cudaDevAttrClockRate: *v = 1000000; break;
	case cudaDevAttrMemoryClockRate: *v = 1000000; break;
	case cudaDevAttrGlobalMemoryBusWidth: *v = 5120; break;
	case cudaDevAttrL2CacheSize: *v = 50 << 20; break;
	case cudaDevAttrEccEnabled: *v = 1; break;
	default: return emu_fail(cudaErrorInvalidValue);
	}
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
	cudaError_t error = emu_driver_error();
	const char *name = getenv("EMU_NAME");
	size_t left;

	*p = {};
	if (error != cudaSuccess)
		return error;
	snprintf(p->name, sizeof(p->name), "%s", name ? name : "Emulated GPU");
	cudaMemGetInfo(&left, &p->totalGlobalMem);
	p->major = capability(0);
	p->minor = capability(1);
	p->multiProcessorCount = 4;
	p->sharedMemPerBlock = 48 << 10;
	p->sharedMemPerBlockOptin = emu_shared_limit();
	p->sharedMemPerMultiprocessor = 228 << 10;
	p->maxThreadsPerBlock = EMU_THREADS;
	p->maxThreadsPerMultiProcessor = 2048;
	p->regsPerMultiprocessor = p->regsPerBlock = 64 << 10;
	p->memoryBusWidth = 5120;
	p->l2CacheSize = 50 << 20;
	p->warpSize = 32;
	p->pciBusID = device;
	p->ECCEnabled = 1;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device)
{
	snprintf(text, (size_t)room, "0000:%02x:00.0", (unsigned)device);
	return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) { return cudaDeviceSynchronize(); }
cudaError_t cudaSetDeviceFlags(unsigned) { return emu_driver_error(); }
cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
	return cudaSetDevice(device);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
	*a = {};
	a->maxThreadsPerBlock = EMU_THREADS;
	a->binaryVersion = a->ptxVersion = capability(0) * 10 + capability(1);
	return emu_driver_error();
}
}
