/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's runtime: launches, streams and events. Memory and copies are in
 * memory.cc, errors and the device in device.cc.
 */
#include <map>
#include <time.h>
#include "emu.h"

static std::map<const void *, int> shared_limits;	/* by kernel */

struct CUevent_st {
	uint32_t op;			/* of its record; 0: none yet */
	emu_moment before;
	int64_t came_ns;
	bool timed;
	int patience;
};

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
	cudaError_t error = emu_driver_error();

	if (error == cudaSuccess) {
		error = check_launch(c, kernel);
		if (error != cudaSuccess)
			emu_report(NULL, "a launch of %s is refused: grid %u "
				   "%u %u, block %u %u %u, %zu bytes of shared "
				   "memory", emu_kernel_name(kernel),
				   c->gridDim.x, c->gridDim.y, c->gridDim.z,
				   c->blockDim.x, c->blockDim.y, c->blockDim.z,
				   c->dynamicSmemBytes);
	}
	if (error != cudaSuccess) {
		drop(call);
		return emu_fail(error);
	}
	emu_count_launch();
	emu_enqueue(c->stream, NULL, run_launch,
		    new launch{ { kernel, c->gridDim, c->blockDim,
				  c->dynamicSmemBytes, call, bytes, run },
				drop }, 0, kernel);
	return emu_failure();
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
cudaError_t cudaDeviceSynchronize(void)
{
	emu_start();
	emu_count_wait();
	emu_wait_all();
	return emu_failure();
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute a,
				 int value)
{
	if (a != cudaFuncAttributeMaxDynamicSharedMemorySize)
		return cudaSuccess;
	if (value > emu_shared_limit())
		return emu_fail(cudaErrorInvalidValue);
	shared_limits[kernel] = value;
	return cudaSuccess;
}

/* ---- streams */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return emu_driver_error();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
	cudaError_t error = emu_driver_error();

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
	return emu_failure();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	emu_start();
	emu_count_wait();
	emu_wait(emu_stream(stream)->last);
	emu_host_waited(emu_stream_moment(stream));
	return emu_failure();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	int patience = (int)(emu_random() % 4);

	if (emu_failure())
		return emu_failure();
	if (!emu_poll(emu_stream(stream)->last, &patience))
		return emu_fail(cudaErrorNotReady);
	emu_host_waited(emu_stream_moment(stream));
	return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	emu_enqueue(stream, "host function", run_host_call,
		    new host_call{ fn, arg });
	return emu_failure();
}

/* ---- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	*event = new CUevent_st();
	(*event)->timed = !(flags & cudaEventDisableTiming);
	return emu_driver_error();
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
	return emu_failure();
}

/* One that was never recorded is complete. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned)
{
	if (event->op == 0)
		return emu_failure();
	emu_stream_waited(stream, &event->before);
	emu_enqueue(stream, "wait", NULL, NULL, event->op);
	return emu_failure();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	if (emu_failure())
		return emu_failure();
	if (!emu_poll(event->op, &event->patience))
		return emu_fail(cudaErrorNotReady);
	emu_host_waited(&event->before);
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	emu_wait(event->op);
	emu_host_waited(&event->before);
	return emu_failure();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	int patience = 0;

	if (!from->timed || !to->timed || !from->op || !to->op)
		return emu_fail(cudaErrorInvalidResourceHandle);
	if (!emu_poll(from->op, &patience) || !emu_poll(to->op, &patience))
		return emu_fail(cudaErrorNotReady);
	*ms = (float)(to->came_ns - from->came_ns) / 1e6f;
	return emu_failure();
}
}
