/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the GPU and of the host: taken by open() and alloc(), freed by
 * close(), and copied between in the order of a queue.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/state.h"
#include "util/error.h"

static size_t count_mib(size_t bytes)
{
	return (bytes >> 20) + (bytes % (1 << 20) > 0);
}

static size_t count_taken(const struct cuda *cuda)
{
	size_t bytes = 0;

	for (const struct block *block = cuda->blocks; block;
	     block = block->next)
		bytes += block->space == SPACE_DEVICE ? block->bytes : 0;
	return bytes;
}

/* bytes: what could not be taken; it may be more than was known before */
static int refuse_device(const struct cuda *cuda, size_t bytes,
			 struct ddp_error *error)
{
	size_t left = 0, all = 0, taken = count_taken(cuda);
	size_t known = cuda->needed, asked = taken + bytes;

	cudaMemGetInfo(&left, &all);
	ddp_error_set(error, DDP_ERROR_CUDA, "%s has %zu MiB of memory free, "
		      "and this rank needs %zu MiB: choose a smaller --batch, "
		      "--recompute on, or --zero 1 with several ranks",
		      cuda->name, (left + taken) >> 20,
		      count_mib(known > asked ? known : asked));
	return ddp_error_set_native(error, cudaErrorMemoryAllocation);
}

static int refuse_host(const char *kind, size_t bytes, const char *why,
		       struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%zu MiB of %s for the "
			     "model cannot be had: %s; choose a smaller "
			     "--batch or model", count_mib(bytes), kind, why);
}

/* Returns zeroed memory, or NULL with the error. */
static char *take_device(struct device *device, size_t bytes,
			 cudaError_t *failure)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	void *at = NULL;

	*failure = cudaMalloc(&at, bytes);
	if (*failure != cudaSuccess)
		return NULL;
	*failure = cudaMemsetAsync(at, 0, bytes, stream);
	if (*failure == cudaSuccess)
		*failure = cudaStreamSynchronize(stream);
	if (*failure == cudaSuccess)
		return at;
	cudaFree(at);
	return NULL;
}

static char *take_host(size_t bytes, struct ddp_error *error)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at != MAP_FAILED)
		return at;
	refuse_host("memory", bytes, strerror(errno), error);
	return NULL;
}

/* The host's pages that the GPU reads and writes itself. */
static char *take_staging(size_t bytes, struct ddp_error *error)
{
	void *at = NULL;
	cudaError_t failure = cudaHostAlloc(&at, bytes, cudaHostAllocPortable);

	if (failure == cudaSuccess)
		return memset(at, 0, bytes);
	refuse_host("pinned memory", bytes, cudaGetErrorString(failure), error);
	ddp_error_set_native(error, (int)failure);
	return NULL;
}

static void give(enum device_space space, char *at, size_t bytes)
{
	if (space == SPACE_DEVICE)
		cudaFree(at);
	else if (space == SPACE_STAGING)
		cudaFreeHost(at);
	else
		munmap(at, bytes);
}

static char *take(struct device *device, enum device_space space, size_t bytes,
		  struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);
	struct block *block = calloc(1, sizeof(*block));
	cudaError_t failure = cudaSuccess;

	if (!block) {
		refuse_host("memory", sizeof(*block), strerror(errno), error);
		return NULL;
	}
	block->space = space;
	block->bytes = bytes;
	if (space == SPACE_HOST)
		block->at = take_host(bytes, error);
	else if (space == SPACE_STAGING)
		block->at = take_staging(bytes, error);
	else
		block->at = take_device(device, bytes, &failure);
	if (block->at) {
		block->next = cuda->blocks;
		cuda->blocks = block;
		return block->at;
	}
	free(block);
	if (space != SPACE_DEVICE)
		return NULL;
	if (failure == cudaErrorMemoryAllocation) {
		refuse_device(cuda, bytes, error);
		return NULL;
	}
	cuda_check(device, failure, "taking its memory");
	cuda_explain(cuda, error);
	return NULL;
}

static int open_ring(struct device *device, struct ddp_error *error)
{
	struct ring *ring = &cuda_state(device)->ring;

	ring->pieces = take(device, SPACE_STAGING,
			    (size_t)RING_PIECES * RING_BYTES, error);
	if (!ring->pieces)
		return -1;
	for (int i = 0; i < RING_PIECES; i++)
		cuda_check(device, cudaEventCreateWithFlags(&ring->events[i],
			   cudaEventDisableTiming), "creating an event");
	return 0;
}

int cuda_open_memory(struct device *device, const size_t *bytes, size_t own,
		     struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);

	cuda->needed = bytes[SPACE_DEVICE] + own + device->later;
	for (int space = 0; space < SPACES; space++) {
		if (bytes[space] == 0)
			continue;
		device->arena[space] = take(device, space, bytes[space], error);
		if (!device->arena[space])
			return -1;
	}
	cuda->sums = (float *)take(device, SPACE_DEVICE,
				   CUDA_SUMS * sizeof(float), error);
	return cuda->sums ? open_ring(device, error) : -1;
}

void cuda_free_memory(struct device *device)
{
	struct cuda *cuda = cuda_state(device);

	for (int i = 0; i < RING_PIECES; i++)
		if (cuda->ring.events[i])
			cudaEventDestroy(cuda->ring.events[i]);
	while (cuda->blocks) {
		struct block *block = cuda->blocks;

		cuda->blocks = block->next;
		give(block->space, block->at, block->bytes);
		free(block);
	}
	memset(device->arena, 0, sizeof(device->arena));
}

void *cuda_alloc(struct device *device, size_t bytes, struct ddp_error *error)
{
	return take(device, SPACE_DEVICE, bytes, error);
}

static bool is_on_gpu(const struct cuda *cuda, const void *at)
{
	const struct block *block = cuda->blocks;

	while (block && (uintptr_t)at - (uintptr_t)block->at >= block->bytes)
		block = block->next;
	return block && block->space == SPACE_DEVICE;
}

/* Sends as many bytes of a host's source as fit a piece; returns how many. */
static size_t send_piece(struct device *device, cudaStream_t stream, void *to,
			 const void *from, size_t bytes)
{
	struct ring *ring = &cuda_state(device)->ring;
	unsigned i = ring->next++ % RING_PIECES;
	char *piece = ring->pieces + (size_t)i * RING_BYTES;
	size_t part = bytes < RING_BYTES ? bytes : RING_BYTES;

	cuda_check(device, cudaEventSynchronize(ring->events[i]), "a copy");
	memcpy(piece, from, part);
	cuda_check(device, cudaMemcpyAsync(to, piece, part,
					   cudaMemcpyHostToDevice, stream),
		   "a copy");
	cuda_check(device, cudaEventRecord(ring->events[i], stream), "a copy");
	return part;
}

static void send(struct device *device, cudaStream_t stream, char *to,
		 const char *from, size_t bytes)
{
	while (bytes > 0) {
		size_t part = send_piece(device, stream, to, from, bytes);

		to += part;
		from += part;
		bytes -= part;
	}
}

/*
 * Within the host the queue's earlier work may write the source, and its later
 * work may read the destination, so the host waits: no step asks for this.
 */
void cuda_copy(struct device *device, enum device_queue queue, void *to,
	       const void *from, size_t bytes)
{
	const struct cuda *cuda = cuda_state(device);
	cudaStream_t stream = cuda_stream(device, queue);
	bool to_gpu = is_on_gpu(cuda, to);

	if (bytes == 0)
		return;
	if (is_on_gpu(cuda, from)) {
		cuda_check(device, cudaMemcpyAsync(to, from, bytes, to_gpu ?
						   cudaMemcpyDeviceToDevice :
						   cudaMemcpyDeviceToHost,
						   stream), "a copy");
	} else if (to_gpu) {
		send(device, stream, to, from, bytes);
	} else {
		cuda_check(device, cudaStreamSynchronize(stream), "a copy");
		memcpy(to, from, bytes);
	}
}

void cuda_zero(struct device *device, void *at, size_t bytes)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);

	cuda_check(device, cudaMemsetAsync(at, 0, bytes, stream), "zeroing");
}
