/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attention by cuDNN, from inside: dnn_library.c finds libcudnn, dnn_graph.c
 * tells it what attention is, dnn.c is the operator, and dnn_check.c compares
 * it with our own kernels. (Headers named cudnn_* are NVIDIA's.)
 */
#ifndef DDP_TRAIN_CUDA_DNN_H
#define DDP_TRAIN_CUDA_DNN_H

#include <cudnn.h>

#include "cuda/cuda.h"

/* The functions of libcudnn that are called. */
#define DNN_FUNCTIONS(X) \
	X(cudnnGetVersion) \
	X(cudnnGetErrorString) \
	X(cudnnCreate) \
	X(cudnnDestroy) \
	X(cudnnSetStream) \
	X(cudnnBackendCreateDescriptor) \
	X(cudnnBackendDestroyDescriptor) \
	X(cudnnBackendSetAttribute) \
	X(cudnnBackendGetAttribute) \
	X(cudnnBackendFinalize) \
	X(cudnnBackendExecute)

struct dnn_library {
	char name[32];			/* "cuDNN 9.19.0" */
#define X(function) __typeof__(function) *function;
	DNN_FUNCTIONS(X)
#undef X
};

/*
 * Load the libcudnn that DDP_CUDNN_LIBRARY names, or else the one where the
 * dynamic linker looks. It stays loaded. Returns 0, or -1 with error set.
 */
int dnn_load(struct dnn_library *library, struct ddp_error *error);

/* The library and the GPU that plans are made for. */
struct dnn_target {
	const struct dnn_library *library;
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t gpu;	/* without a handle: a GPU's properties,
					   for plans that do not run */
};

/* The tensors of a plan that are in memory. */
enum dnn_tensor {
	DNN_NONE,
	DNN_Q, DNN_K_TURNED, DNN_V, DNN_V_TURNED, DNN_OUT, DNN_LSE,
	DNN_DOUT, DNN_DQ, DNN_DK, DNN_DV,
	DNN_DELTA,			/* workspace: a float for each lse */
	DNN_SCALE, DNN_ONE, DNN_HIDDEN,	/* numbers, which are the host's */
	DNN_IN_MEMORY
};

struct dnn_key {
	int sequences, context, heads, width;
	int type, backward;
};

/* A plan of one direction of attention, of one shape. */
enum { DNN_PARTS = 128 };
struct dnn_plan {
	struct dnn_key key;
	size_t workspace;		/* bytes */
	cudnnBackendDescriptor_t plan;
	cudnnBackendDescriptor_t parts[DNN_PARTS];	/* all that it is of */
	int part_count;
	struct dnn_plan *next;
};

/*
 * The first plan of cuDNN's heuristics that supports the key and is
 * deterministic. NULL with *status set if there is none.
 */
struct dnn_plan *dnn_create_plan(const struct dnn_target *target,
				 const struct dnn_key *key,
				 cudnnStatus_t *status);
void dnn_destroy_plan(const struct dnn_target *target, struct dnn_plan *plan);

/* Put it into the handle's stream; memory[DNN_IN_MEMORY], NULL: unused. */
cudnnStatus_t dnn_run_plan(const struct dnn_target *target,
			   const struct dnn_plan *plan, void *const *memory,
			   void *workspace);

/*
 * Run both on random values of the device's shape. Uses the arena in
 * SPACE_DEVICE, of that many bytes, and leaves it zeroed. Returns 0, or -1 with
 * error set.
 */
int dnn_check(struct device *device, const char *library, size_t bytes,
	      struct ddp_error *error);

#endif
