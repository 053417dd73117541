/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake runtime, and the operators, of which none is under test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "util/error.h"

struct machine now;
size_t used, pinned;
int mallocs, events, streams, odd_streams;
_Thread_local int current;

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = now.count;
	return now.counting;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = now.driver;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = 13000;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int gpu)
{
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "Fake %c",
		 'A' + gpu);
	properties->major = now.major;
	properties->minor = now.minor;
	properties->totalGlobalMem = now.room << 20;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
				   int gpu)
{
	(void)gpu;
	*value = attribute == cudaDevAttrComputeCapabilityMajor ? now.major :
								  now.minor;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu)
{
	current = gpu;
	return now.setting;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaErrorSystemNotReady ? "system not yet initialized" :
						  "some reason";
}

const char *cudaGetErrorName(cudaError_t error)
{
	(void)error;
	return "cudaErrorFake";
}

cudaError_t cudaMalloc(void **at, size_t bytes)
{
	if (bytes > (now.room << 20) - used)
		return cudaErrorMemoryAllocation;
	used += bytes;
	mallocs++;
	return (*at = malloc(bytes)) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *at)
{
	mallocs -= at != NULL;
	free(at);
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
	(void)flags;
	if (bytes > (now.pinned_room << 20) - pinned)
		return cudaErrorMemoryAllocation;
	pinned += bytes;
	mallocs++;
	return (*at = malloc(bytes)) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *at)
{
	return cudaFree(at);
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	*all = now.room << 20;
	*left = *all - used;
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
	(void)s;
	memset(at, value, bytes);
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
			    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind, (void)stream;
	memcpy(to, from, bytes);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
					 int priority)
{
	*stream = (cudaStream_t)&streams;
	/* QUEUE_COMPUTE is the first of them. */
	odd_streams += flags != cudaStreamNonBlocking ||
		       priority != (streams++ == 0 ? 0 : -5);
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	(void)stream;
	streams--;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	(void)stream;
	return now.later;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	(void)stream;
	return now.later;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned flags)
{
	(void)stream, (void)event, (void)flags;
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	(void)flags;
	*event = (cudaEvent_t)&events;
	events++;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	(void)event;
	events--;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	(void)event, (void)stream;
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	(void)event;
	return now.later;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	(void)event;
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *time, cudaEvent_t from, cudaEvent_t to)
{
	(void)from, (void)to;
	*time = 1500;
	return cudaSuccess;
}

/* The operators are not under test, but for the kernel that open() tries. */
#define NO_OPERATOR(name, ...) \
	void cuda_##name(struct device *device, __VA_ARGS__) \
	{ \
		cuda_check(device, cudaErrorNotSupported, #name); \
	}
#define NO_OP(name) NO_OPERATOR(name, const struct op_##name *op)
#pragma GCC diagnostic ignored "-Wunused-parameter"
NO_OP(embed)
NO_OP(embed_backward)
NO_OP(norm)
NO_OP(norm_backward)
NO_OP(matmul)
NO_OP(matmul_backward)
NO_OP(attention)
NO_OP(attention_backward)
NO_OP(classifier)
NO_OP(sum_squares)
NO_OP(step)
NO_OP(adamw)
NO_OP(sgd)
NO_OP(round)
NO_OPERATOR(fold, enum device_queue queue, float *to, const float *from,
	    int parts, size_t stride, size_t count)
NO_OPERATOR(add, float *x, enum device_type type, const void *y, size_t count)
NO_OPERATOR(cast, enum device_type to_type, void *to,
	    enum device_type from_type, const void *from, size_t count)
#pragma GCC diagnostic warning "-Wunused-parameter"

void cuda_gelu(struct device *device, const void *pre, void *y, size_t count)
{
	(void)pre, (void)y, (void)count;
	cuda_check(device, now.kernel, "GELU");
}

struct linear *linear_create(struct device *device, struct ddp_error *error)
{
	if (!now.no_products)
		return device->table->alloc(device, 32 << 20, error);
	ddp_error_set(error, DDP_ERROR_CUDA, "no products");
	return NULL;
}

void linear_destroy(struct linear *linear)
{
	(void)linear;
}
