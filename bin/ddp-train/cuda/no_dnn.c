/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of dnn*.c where configure found no cuDNN. */
#include "cuda/state.h"
#include "util/error.h"

int cuda_open_dnn(struct device *device, size_t bytes, struct ddp_error *error)
{
	(void)device, (void)bytes;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--attention cudnn: "
			     "this ddp_cuda.so was built without cuDNN's "
			     "headers; build it with ./configure "
			     "--with-cudnn, or choose --attention own");
}

void cuda_close_dnn(struct device *device)
{
	(void)device;
}

/* Never called: no device has been opened for them. */
void cuda_dnn_attention(struct device *device, const struct op_attention *op)
{
	(void)device, (void)op;
}

void cuda_dnn_attention_backward(struct device *device,
				 const struct op_attention_backward *op)
{
	(void)device, (void)op;
}
