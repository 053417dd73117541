/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU as a device: its queues, events and errors, and the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"
#include "util/error.h"

cudaStream_t cuda_stream(const struct device *device, enum device_queue queue)
{
	const struct cuda *cuda = cuda_state(device);

	cudaSetDevice(cuda->gpu);	/* cheap; a thread begins with GPU 0 */
	return cuda->streams[queue];
}

void cuda_check(struct device *device, cudaError_t error, const char *what)
{
	struct cuda *cuda = cuda_state(device);

	if (error == cudaSuccess || cuda->error != cudaSuccess)
		return;
	cuda->error = error;
	cuda->what = what;
}

void cuda_check_library(struct device *device, const char *what)
{
	cudaError_t error = cudaStreamQuery(cuda_stream(device, QUEUE_COMPUTE));

	if (error == cudaErrorNotReady) {
		cudaGetLastError();	/* it is no error, but kept as one */
		error = cudaSuccess;
	}
	cuda_check(device, error == cudaSuccess ? cudaErrorNotSupported : error,
		   what);
}

float *cuda_sums(const struct device *device)
{
	return cuda_state(device)->sums;
}

struct linear *cuda_linear(const struct device *device)
{
	return cuda_state(device)->linear;
}

/* Accepts a device that was opened in part. */
static void close_gpu(struct device *device)
{
	struct cuda *cuda = cuda_state(device);

	if (!cuda)
		return;
	for (int i = 0; i < QUEUES; i++)
		if (cuda->streams[i])
			cudaStreamSynchronize(cuda->streams[i]);
	linear_destroy(cuda->linear);
	cuda_close_dnn(device);
	for (int i = 0; i < DEVICE_EVENTS; i++)
		if (cuda->events[i])
			cudaEventDestroy(cuda->events[i]);
	cuda_free_memory(device);
	for (int i = 0; i < QUEUES; i++)
		if (cuda->streams[i])
			cudaStreamDestroy(cuda->streams[i]);
	free(cuda);
	device->state = NULL;
}

/*
 * No stream waits for the default one. What ranks exchange goes first: it is
 * what others wait for, and takes little of the GPU.
 */
static int open_queues(struct device *device, struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);
	int least = 0, greatest = 0;

	cuda_check(device, cudaDeviceGetStreamPriorityRange(&least, &greatest),
		   "asking for priorities");
	for (int i = 0; i < QUEUES; i++)
		cuda_check(device, cudaStreamCreateWithPriority(
			   &cuda->streams[i], cudaStreamNonBlocking,
			   i == QUEUE_COMPUTE ? least : greatest),
			   "creating a stream");
	for (int i = 0; i < DEVICE_EVENTS; i++)
		cuda_check(device, cudaEventCreateWithFlags(&cuda->events[i],
			   cudaEventDefault), "creating an event");
	return cuda->error == cudaSuccess ? 0 : cuda_explain(cuda, error);
}

static int check_queues(struct device *device, struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);

	/* Do not wait: a peer that is gone sends nothing. */
	if (cuda->error != cudaSuccess)
		return cuda_explain(cuda, error);
	for (int i = 0; i < QUEUES; i++)
		cuda_check(device, cudaStreamSynchronize(cuda->streams[i]),
			   "the work of a step");
	return cuda->error == cudaSuccess ? 0 : cuda_explain(cuda, error);
}

/* A first small kernel tells whether this GPU runs any. */
static int try_kernel(struct device *device, struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);

	cuda_gelu(device, cuda->sums, cuda->sums + 8, 8);
	if (check_queues(device, NULL) == 0)
		return 0;
	if (cuda->error == cudaErrorNoKernelImageForDevice ||
	    cuda->error == cudaErrorInvalidDeviceFunction ||
	    cuda->error == cudaErrorUnsupportedPtxVersion)
		return cuda_miss_code(cuda, error);
	return cuda_explain(cuda, error);
}

static void note_products(const struct device *device)
{
	char *note = cuda_state(device)->note;
	size_t length = strlen(note);

	if (device->tf32 && device->type == DEVICE_FP32)
		snprintf(note + length, sizeof(cuda_state(device)->note) -
			 length, ", fp32 products by TF32");
}

static int open_parts(struct device *device, const size_t *bytes,
		      struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);

	if (cuda_find_gpu(device, error) < 0 ||
	    open_queues(device, error) < 0 ||
	    cuda_open_memory(device, bytes, sizes_count_own(device->type),
			     error) < 0)
		return -1;
	note_products(device);
	cuda->linear = linear_create(device, error);
	if (!cuda->linear || try_kernel(device, error) < 0)
		return -1;
	return device->shape.attention == ATTENTION_CUDNN ?
	       cuda_open_dnn(device, bytes[SPACE_DEVICE], error) : 0;
}

static int open_gpu(struct device *device, enum device_type type,
		    const size_t *bytes, int threads, struct ddp_error *error)
{
	(void)threads;
	device->type = type;
	device->state = calloc(1, sizeof(struct cuda));
	memset(device->arena, 0, sizeof(device->arena));
	if (!device->state)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory of "
				     "the host is left: choose a smaller "
				     "model");
	if (open_parts(device, bytes, error) == 0)
		return 0;
	close_gpu(device);
	return -1;
}

static const char *describe_gpu(const struct device *device)
{
	return cuda_state(device)->note;
}

static void attend(struct device *device, const struct op_attention *op)
{
	if (cuda_state(device)->dnn)
		cuda_dnn_attention(device, op);
	else
		cuda_attention(device, op);
}

static void attend_backward(struct device *device,
			    const struct op_attention_backward *op)
{
	if (cuda_state(device)->dnn)
		cuda_dnn_attention_backward(device, op);
	else
		cuda_attention_backward(device, op);
}

static void record_event(struct device *device, int event,
			 enum device_queue queue)
{
	cuda_check(device, cudaEventRecord(cuda_state(device)->events[event],
					   cuda_stream(device, queue)),
		   "an event");
}

static void wait_event(struct device *device, int event,
		       enum device_queue queue)
{
	cuda_check(device, cudaStreamWaitEvent(
		   cuda_stream(device, queue),
		   cuda_state(device)->events[event], 0), "an event");
}

static int query_event(struct device *device, int event)
{
	struct cuda *cuda = cuda_state(device);
	cudaError_t answer = cudaEventQuery(cuda->events[event]);

	if (answer == cudaErrorNotReady)
		cudaGetLastError();	/* it is no error, but kept as one */
	else
		cuda_check(device, answer, "the work of a step");
	if (cuda->error != cudaSuccess)
		return -1;
	return answer == cudaSuccess;
}

static double measure_events(struct device *device, int from, int to)
{
	struct cuda *cuda = cuda_state(device);
	float milliseconds = 0;

	cuda_check(device, cudaEventElapsedTime(&milliseconds,
						cuda->events[from],
						cuda->events[to]),
		   "measuring a time");
	return milliseconds / 1e3;
}

static void *find_stream(struct device *device, enum device_queue queue)
{
	return cuda_stream(device, queue);
}

__attribute__((visibility("default")))
extern const struct device_table ddp_device_table;

const struct device_table ddp_device_table = {
	.abi = DEVICE_ABI,
	.name = "cuda",
	.check_shape = sizes_check_shape,
	.open = open_gpu,
	.close = close_gpu,
	.alloc = cuda_alloc,
	.note = describe_gpu,
	.work_bytes = sizes_count_work,
	.own_bytes = sizes_count_own,
	.check = check_queues,
	.record = record_event,
	.wait = wait_event,
	.query = query_event,
	.elapsed = measure_events,
	.stream = find_stream,
	.copy = cuda_copy,
	.embed = cuda_embed,
	.embed_backward = cuda_embed_backward,
	.norm = cuda_norm,
	.norm_backward = cuda_norm_backward,
	.matmul = cuda_matmul,
	.matmul_backward = cuda_matmul_backward,
	.gelu = cuda_gelu,
	.attention = attend,
	.attention_backward = attend_backward,
	.classifier = cuda_classifier,
	.sum_squares = cuda_sum_squares,
	.step = cuda_step,
	.adamw = cuda_adamw,
	.sgd = cuda_sgd,
	.round = cuda_round,
	.fold = cuda_fold,
	.add = cuda_add,
	.zero = cuda_zero,
	.cast = cuda_cast
};
