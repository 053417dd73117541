/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the CUDA driver, libcuda.so.1, which is loaded at run time. The CUDA
 * runtime would be a second copy beside the program's. Any thread may call
 * these.
 */
#ifndef DDP_NCCL_CUDA_H
#define DDP_NCCL_CUDA_H

#include "nccl/card.h"
#include "util/error.h"

/* The calling thread's GPU. Returns 0; or -1 if there is none, or the thread
 * has chosen none. */
int ddp_cuda_get_current(struct ddp_gpu_id *gpu, struct ddp_error *error);

/* 1: all that was enqueued is done; 0: not yet; -1: an error. */
int ddp_cuda_query_stream(void *stream, struct ddp_error *error);

#endif
