/* SPDX-License-Identifier: BSD-3-Clause */
/* The state behind a CUDA device, and the parts of cuda.c. */
#ifndef DDP_TRAIN_CUDA_STATE_H
#define DDP_TRAIN_CUDA_STATE_H

#include "cuda/cuda.h"

/*
 * A ring of pinned pieces, each with the event of its last use. Host memory
 * goes through them on its way to the GPU, so that it may be written again at
 * once. The host waits for the GPU only if all pieces are on their way. A copy
 * takes at least one piece. A step has a copy for each batch of a rank and one
 * for what ranks agree on: more than 62 batches, or large ones, wait.
 */
enum { RING_PIECES = 64, RING_BYTES = 128 << 10 };

struct ring {
	char *pieces;
	cudaEvent_t events[RING_PIECES];
	unsigned next;
};

/* Memory to free when the device is closed. */
struct block {
	enum device_space space;
	size_t bytes;
	char *at;
	struct block *next;
};

struct cuda {
	int gpu;			/* its number in CUDA */
	char name[320];			/* of the GPU, for people */
	char note[320];
	cudaStream_t streams[QUEUES];
	cudaEvent_t events[DEVICE_EVENTS];
	struct block *blocks;
	size_t needed;			/* bytes of SPACE_DEVICE, in all */
	struct ring ring;
	float *sums;
	struct linear *linear;
	struct dnn *dnn;		/* NULL: attention is our own */
	cudaError_t error;		/* the first one, and what met it */
	const char *what;
};

static inline struct cuda *cuda_state(const struct device *device)
{
	return device->state;
}

/* find.c: choose this rank's GPU, or a shared one; make it the thread's. */
int cuda_find_gpu(struct device *device, struct ddp_error *error);

/* find.c: "gpu cannot ...": the module has no code for it. Returns -1. */
int cuda_miss_code(const struct cuda *cuda, struct ddp_error *error);

/* find.c: the sentence of work that has failed. Returns -1. */
int cuda_explain(const struct cuda *cuda, struct ddp_error *error);

/*
 * dnn.c: attention by cuDNN, of device->shape; the arena of SPACE_DEVICE has
 * that many bytes. Returns 0, or -1 with error set.
 */
int cuda_open_dnn(struct device *device, size_t bytes, struct ddp_error *error);
void cuda_close_dnn(struct device *device);

/* memory.c: they fail with nothing to undo but cuda_free_memory(). */
int cuda_open_memory(struct device *device, const size_t *bytes, size_t own,
		     struct ddp_error *error);
void cuda_free_memory(struct device *device);
void *cuda_alloc(struct device *device, size_t bytes, struct ddp_error *error);
void cuda_copy(struct device *device, enum device_queue queue, void *to,
	       const void *from, size_t bytes);
void cuda_zero(struct device *device, void *at, size_t bytes);

#endif
