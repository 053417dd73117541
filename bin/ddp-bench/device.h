/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU of this process, through libcuda.so.1, which is found at run time.
 * Functions that return int return 0 or -1; the one GPU is that of
 * device_open.
 */
#ifndef DDP_BENCH_DEVICE_H
#define DDP_BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/error.h"

/*
 * Choose the GPU: the only one that is visible, or else the one of the local
 * rank; if ranks share, they take turns. Its context becomes the thread's, and
 * name "0000:1b:00.0 NVIDIA H200".
 */
int device_open(int local_rank, bool share, char *name, size_t size,
		struct ddp_error *error);
void device_close(void);

void *device_reserve(size_t size, struct ddp_error *error);
void device_release(void *memory);

/* Wait until it is done. */
int device_put(void *memory, const void *from, size_t size,
	       struct ddp_error *error);
int device_get(void *to, const void *memory, size_t size,
	       struct ddp_error *error);

/* The stream that is made by device_open. 1: all that was enqueued is done; 0:
 * not yet; -1: an error. */
void *device_stream(void);
int device_query(struct ddp_error *error);

#endif
