/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's runtime: the device, errors, launches, streams and events. Memory and
 * copies are in memory.cc.
 *
 *   EMU_DEVICES=N       GPUs [1]
 *   EMU_NAME=TEXT       their name [Emulated GPU]
 *   EMU_CC=M.N          their compute capability [9.0]
 *   EMU_DRIVER=N        the driver's version, 13000 being 13.0 [the runtime's];
 *                       with 0 there is none; an old one is refused
 *   EMU_LOST=N[:CODE]   from launch N on every call fails so [719]
 */
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <time.h>
#include "emu.h"

static cudaError_t last_error, sticky;
static std::map<const void *, int> shared_limits;	/* by kernel */

struct CUevent_st {
	uint32_t op;			/* of its record; 0: none yet */
	emu_moment before;
	int64_t came_ns;
	bool timed;
	int patience;
};

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

/* ---- errors */

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
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

cudaError_t emu_failure(void) { return sticky; }

static cudaError_t driver_error(void)
{
	long version = number("EMU_DRIVER", CUDART_VERSION);

	emu_start();
	if (version / 1000 < CUDART_VERSION / 1000)
		return emu_fail(cudaErrorInsufficientDriver);
	if (number("EMU_DEVICES", 1) < 1)
		return emu_fail(cudaErrorNoDevice);
	return sticky;
}

static void count_launch(void)
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

/* ---- launches */

static cudaError_t check_launch(const cudaLaunchConfig_t *c, const void *kernel)
{
	dim3 grid = c->gridDim, block = c->blockDim;
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	size_t limit = 48 << 10;

	if (shared_limits.count(kernel))
		limit = (size_t)shared_limits[kernel];
	if (threads == 0 || threads > EMU_THREADS || block.z > 64 ||
	    grid.x == 0 || grid.y == 0 || grid.z == 0 ||
	    grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
		return cudaErrorInvalidConfiguration;
	return c->dynamicSmemBytes > limit ? cudaErrorInvalidValue :
		cudaSuccess;
}

struct launch {
	emu_grid grid;
	void (*drop)(void *);
};

static int run_launch(void *arg)
{
	launch *l = (launch *)arg;

	emu_run_grid(&l->grid);
	l->drop(l->grid.call);
	delete l;
	return 1;
}

extern "C" cudaError_t emu_launch(const cudaLaunchConfig_t *c,
		const void *kernel, void *call, size_t bytes,
		void (*run)(void *), void (*drop)(void *))
{
	cudaError_t error = driver_error();

	if (error == cudaSuccess) {
		error = check_launch(c, kernel);
		if (error != cudaSuccess)
			emu_report(NULL, "a launch of %s is refused: grid %u "
				   "%u %u, block %u %u %u, %zu bytes of shared "
				   "memory", emu_kernel_name(kernel), c->gridDim.x, c->gridDim.y,
				   c->gridDim.z, c->blockDim.x, c->blockDim.y,
				   c->blockDim.z, c->dynamicSmemBytes);
	}
	if (error != cudaSuccess) {
		drop(call);
		return emu_fail(error);
	}
	count_launch();
	emu_enqueue(c->stream, NULL, run_launch,
		    new launch{ { kernel, c->gridDim, c->blockDim,
				  c->dynamicSmemBytes, call, bytes, run },
				drop }, 0, kernel);
	return sticky;
}

static int run_event(void *arg)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	((cudaEvent_t)arg)->came_ns = now.tv_sec * 1000000000ll + now.tv_nsec;
	return 1;
}

struct host_call {
	cudaHostFn_t fn;
	void *arg;
};

static int run_host_call(void *arg)
{
	host_call *call = (host_call *)arg;

	call->fn(call->arg);
	delete call;
	return 1;
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
	return sticky ? sticky : last_error;
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
	return driver_error();
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = driver_error();

	if (error == cudaSuccess &&
	    (device < 0 || device >= number("EMU_DEVICES", 1)))
		error = cudaErrorInvalidDevice;
	return emu_fail(error);
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return driver_error();
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

static int capability(int minor)
{
	const char *text = getenv("EMU_CC");

	text = text ? text : "9.0";
	return minor ? text[strcspn(text, ".")] ?
		atoi(text + strcspn(text, ".") + 1) : 0 : atoi(text);
}

cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr attribute, int)
{
	switch (attribute) {
	case cudaDevAttrComputeCapabilityMajor: *v = capability(0); break;
	case cudaDevAttrComputeCapabilityMinor: *v = capability(1); break;
	/* Few, so that loops over blocks are taken */
	case cudaDevAttrMultiProcessorCount: *v = 4; break;
	case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = EMU_SHARED; break;
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
	cudaError_t error = driver_error();
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
	p->sharedMemPerBlockOptin = EMU_SHARED;
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
cudaError_t cudaSetDeviceFlags(unsigned) { return driver_error(); }
cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
	return cudaSetDevice(device);
}

cudaError_t cudaDeviceSynchronize(void)
{
	emu_start();
	emu_wait_all();
	return sticky;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute a,
				 int value)
{
	if (a != cudaFuncAttributeMaxDynamicSharedMemorySize)
		return cudaSuccess;
	if (value > EMU_SHARED)
		return emu_fail(cudaErrorInvalidValue);
	shared_limits[kernel] = value;
	return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
	*a = {};
	a->maxThreadsPerBlock = EMU_THREADS;
	a->binaryVersion = a->ptxVersion = capability(0) * 10 + capability(1);
	return driver_error();
}

/* ---- streams */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return driver_error();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
	cudaError_t error = driver_error();

	if (error != cudaSuccess)
		return error;
	*stream = emu_open_stream();
	return *stream ? cudaSuccess : emu_fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	emu_wait(emu_stream(stream)->last);
	emu_stream(stream)->open = false;
	return sticky;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	emu_start();
	emu_wait(emu_stream(stream)->last);
	emu_host_waited(emu_stream_moment(stream));
	return sticky;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	int patience = (int)(emu_random() % 4);

	if (sticky)
		return sticky;
	if (!emu_poll(emu_stream(stream)->last, &patience))
		return cudaErrorNotReady;
	emu_host_waited(emu_stream_moment(stream));
	return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	emu_enqueue(stream, "host function", run_host_call,
		    new host_call{ fn, arg });
	return sticky;
}

/* ---- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	*event = new CUevent_st();
	(*event)->timed = !(flags & cudaEventDisableTiming);
	return driver_error();
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

/* Work that is still open may point to it: it stays. */
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	event->op = emu_enqueue(stream, "event", run_event, event);
	event->before = *emu_stream_moment(stream);
	event->patience = (int)(emu_random() % 4);
	return sticky;
}

/* One that was never recorded is complete. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned)
{
	if (event->op == 0)
		return sticky;
	emu_stream_waited(stream, &event->before);
	emu_enqueue(stream, "wait", NULL, NULL, event->op);
	return sticky;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	if (sticky)
		return sticky;
	if (!emu_poll(event->op, &event->patience))
		return cudaErrorNotReady;
	emu_host_waited(&event->before);
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	emu_wait(event->op);
	emu_host_waited(&event->before);
	return sticky;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	int patience = 0;

	if (!from->timed || !to->timed || !from->op || !to->op)
		return emu_fail(cudaErrorInvalidResourceHandle);
	if (!emu_poll(from->op, &patience) || !emu_poll(to->op, &patience))
		return cudaErrorNotReady;
	*ms = (float)(to->came_ns - from->came_ns) / 1e6f;
	return sticky;
}
}
