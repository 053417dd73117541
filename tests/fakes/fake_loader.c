/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libcuda.so.1 that takes any kernel and runs none: with it the real
 * cuDNN makes plans for GPUs that are not there, and compiles their kernels.
 */
/* What is loaded is something, and has what is asked of it. */
#define TAKES(function) \
	int function(void **to) \
	{ \
		*to = "fake"; \
		return 0; \
	}
#define TELLS(function, number) \
	int function(int *to) \
	{ \
		*to = number; \
		return 0; \
	}
#define ACCEPTS(function) int function(void) { return 0; }

int cuDriverGetVersion(void) { return 34; }
int cuDeviceGetCount(void) { return 34; }
int cuDeviceGet(void) { return 34; }
TAKES(cuLibraryLoadData)
TAKES(cuLibraryLoadFromFile)
TAKES(cuLibraryGetKernel)
TAKES(cuModuleLoadData)
TAKES(cuModuleLoadDataEx)
TAKES(cuModuleGetFunction)
TAKES(cuLinkCreate)
TAKES(cuLinkComplete)
TAKES(cuCtxGetCurrent)
TAKES(cuStreamGetCtx)
int cuInit(void) { return 34; }
ACCEPTS(cuGetErrorName)
ACCEPTS(cuGetErrorString)
ACCEPTS(cuCtxGetLimit)
ACCEPTS(cuCtxPopCurrent)
ACCEPTS(cuCtxPushCurrent)
ACCEPTS(cuLinkAddData)
ACCEPTS(cuLinkDestroy)
ACCEPTS(cuLibraryUnload)
ACCEPTS(cuModuleUnload)
ACCEPTS(cuKernelSetAttribute)
ACCEPTS(cuKernelGetAttribute)
TAKES(cuKernelGetFunction)
ACCEPTS(cuFuncSetAttribute)
ACCEPTS(cuFuncGetAttribute)
ACCEPTS(cuLaunchKernel)
ACCEPTS(cuLaunchKernelEx)
ACCEPTS(cuLaunchCooperativeKernel)
ACCEPTS(cuOccupancyMaxPotentialClusterSize)
