/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few things that libddp asks CUDA itself, through libcuda.so.1, which is
 * found at run time: never through a second copy of the CUDA runtime. All of
 * them by any thread.
 */
#ifndef DDP_NCCL_CUDA_H
#define DDP_NCCL_CUDA_H

#include "layout/error.h"
#include "nccl/card.h"

/* The calling thread's GPU. */
struct ddp_gpu_id {
	enum ddp_gpu_id_kind kind;
	unsigned char id[16];
};

/* An error where there is none, or where the thread has not chosen one.
 * Returns 0, or -1. */
int ddp_cuda_get_current(struct ddp_gpu_id *gpu, struct ddp_error *error);

/* 1: all that was enqueued is done; 0: not yet; -1: an error. */
int ddp_cuda_query_stream(void *stream, struct ddp_error *error);

#endif
