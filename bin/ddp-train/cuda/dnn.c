/* SPDX-License-Identifier: BSD-3-Clause */
/* Attention by cuDNN, where --attention cudnn asks for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/dnn.h"
#include "cuda/state.h"
#include "util/error.h"

struct dnn {
	struct dnn_library library;
	struct dnn_target target;
	struct dnn_plan *plans;		/* of each shape that was met */
	float scale, one, hidden;	/* what plans take by value */
	char what[64];			/* met an error */
};

static void note_status(struct device *device, cudnnStatus_t status)
{
	struct dnn *dnn = cuda_state(device)->dnn;

	if (status == CUDNN_STATUS_SUCCESS)
		return;
	if (!dnn->what[0])
		snprintf(dnn->what, sizeof(dnn->what), "attention (%s)",
			 dnn->library.cudnnGetErrorString(status));
	cuda_check_library(device, dnn->what);
}

/*
 * A shape's plan is made when it is first met, and kept: the run's by open(),
 * of fewer sequences by an evaluation or --sample. NULL with *status set.
 */
static struct dnn_plan *find_plan(struct dnn *dnn, const struct dnn_key *key,
				  cudnnStatus_t *status)
{
	struct dnn_plan *plan = dnn->plans;

	*status = CUDNN_STATUS_SUCCESS;
	while (plan && memcmp(&plan->key, key, sizeof(*key)) != 0)
		plan = plan->next;
	if (plan)
		return plan;
	plan = dnn_create_plan(&dnn->target, key, status);
	if (!plan)
		return NULL;
	/* The device has planned no more for it: sizes_count_work(). */
	if (plan->workspace > sizes_count_dnn_workspace(
		    key->sequences, key->context, key->heads)) {
		dnn_destroy_plan(&dnn->target, plan);
		*status = CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
		return NULL;
	}
	plan->next = dnn->plans;
	return dnn->plans = plan;
}

static void run(struct device *device, const struct dnn_key *key,
		void **memory, void *work)
{
	struct dnn *dnn = cuda_state(device)->dnn;
	const struct dnn_plan *plan;
	cudnnStatus_t status;

	cuda_stream(device, QUEUE_COMPUTE);	/* sets the thread's GPU */
	plan = find_plan(dnn, key, &status);
	dnn->scale = 1 / sqrtf((float)(key->width / key->heads));
	dnn->one = 1;
	dnn->hidden = -INFINITY;
	memory[DNN_SCALE] = &dnn->scale;
	memory[DNN_HIDDEN] = &dnn->hidden;
	if (key->backward) {
		memory[DNN_ONE] = &dnn->one;
		memory[DNN_DELTA] = work;
	}
	if (plan)
		status = dnn_run_plan(&dnn->target, plan, memory, (char *)work +
				      sizes_count_dnn_delta(key->sequences,
							    key->context,
							    key->heads));
	note_status(device, status);
}

/* Returns where q, k or v begins in qkv, or its gradient in dqkv. */
static void *find_part(const struct device *device, const void *qkv, int part,
		       int width)
{
	return value_at(device->type, qkv, (size_t)part * (size_t)width);
}

void cuda_dnn_attention(struct device *device, const struct op_attention *op)
{
	const struct dnn_key key = {
		op->sequences, op->context, op->heads, op->width,
		(int)device->type, false
	};
	void *memory[DNN_IN_MEMORY] = {
		[DNN_Q] = find_part(device, op->qkv, 0, op->width),
		[DNN_K_TURNED] = find_part(device, op->qkv, 1, op->width),
		[DNN_V] = find_part(device, op->qkv, 2, op->width),
		[DNN_OUT] = op->out, [DNN_LSE] = op->lse
	};

	run(device, &key, memory, op->work);
}

void cuda_dnn_attention_backward(struct device *device,
				 const struct op_attention_backward *op)
{
	const struct dnn_key key = {
		op->sequences, op->context, op->heads, op->width,
		(int)device->type, true
	};
	void *memory[DNN_IN_MEMORY] = {
		[DNN_Q] = find_part(device, op->qkv, 0, op->width),
		[DNN_K_TURNED] = find_part(device, op->qkv, 1, op->width),
		[DNN_V_TURNED] = find_part(device, op->qkv, 2, op->width),
		[DNN_OUT] = (void *)op->out, [DNN_LSE] = (void *)op->lse,
		[DNN_DOUT] = (void *)op->dout,
		[DNN_DQ] = find_part(device, op->dqkv, 0, op->width),
		[DNN_DK] = find_part(device, op->dqkv, 1, op->width),
		[DNN_DV] = find_part(device, op->dqkv, 2, op->width)
	};

	run(device, &key, memory, op->work);
}

static int start(struct device *device, struct ddp_error *error)
{
	struct dnn *dnn = cuda_state(device)->dnn;
	const struct dnn_library *library = &dnn->library;
	cudnnStatus_t status = library->cudnnCreate(&dnn->target.handle);

	if (status == CUDNN_STATUS_SUCCESS)
		status = library->cudnnSetStream(
			dnn->target.handle, cuda_stream(device, QUEUE_COMPUTE));
	if (status == CUDNN_STATUS_SUCCESS)
		return 0;
	return ddp_error_set(error, DDP_ERROR_CUDA, "--attention cudnn: %s "
			     "does not start on this GPU: %s; is it built for "
			     "this driver's CUDA? Choose --attention own",
			     library->name,
			     library->cudnnGetErrorString(status));
}

/* Both directions, of the run's shape */
static int make_plans(struct device *device, struct ddp_error *error)
{
	const struct device_shape *shape = &device->shape;
	struct dnn *dnn = cuda_state(device)->dnn;
	cudnnStatus_t status;

	for (int backward = 0; backward < 2; backward++) {
		const struct dnn_key key = {
			shape->rows / shape->context, shape->context,
			shape->heads, shape->width, (int)device->type, backward
		};

		if (find_plan(dnn, &key, &status))
			continue;
		return ddp_error_set(error, DDP_ERROR_CUDA, "--attention "
				     "cudnn: %s has no deterministic "
				     "attention%s for %d heads of %d values, "
				     "--context %d and %s on this GPU: %s; "
				     "choose --attention own",
				     dnn->library.name,
				     backward ? " backward" : "", shape->heads,
				     shape->width / shape->heads,
				     shape->context,
				     device->type == DEVICE_BF16 ? "bf16" :
								   "fp16",
				     dnn->library.cudnnGetErrorString(status));
	}
	return 0;
}

int cuda_open_dnn(struct device *device, size_t bytes, struct ddp_error *error)
{
	struct cuda *cuda = cuda_state(device);
	size_t length = strlen(cuda->note);

	cuda->dnn = calloc(1, sizeof(*cuda->dnn));
	if (!cuda->dnn)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory of "
				     "the host is left: choose a smaller "
				     "model");
	cuda->dnn->target.library = &cuda->dnn->library;
	if (dnn_load(&cuda->dnn->library, error) < 0 ||
	    start(device, error) < 0 || make_plans(device, error) < 0)
		return -1;
	snprintf(cuda->note + length, sizeof(cuda->note) - length,
		 ", attention by %s", cuda->dnn->library.name);
	return dnn_check(device, cuda->dnn->library.name, bytes, error);
}

void cuda_close_dnn(struct device *device)
{
	struct dnn *dnn = cuda_state(device)->dnn;

	if (!dnn)
		return;
	while (dnn->plans) {
		struct dnn_plan *plan = dnn->plans;

		dnn->plans = plan->next;
		dnn_destroy_plan(&dnn->target, plan);
	}
	if (dnn->target.handle)
		dnn->library.cudnnDestroy(dnn->target.handle);
	free(dnn);
}
