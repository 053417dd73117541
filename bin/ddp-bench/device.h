/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU of this process, through libcuda.so.1, which is found at run time.
 * Functions that return int return 0, or -1 with error set. All are about the
 * GPU that device_open chose.
 */
#ifndef DDP_BENCH_DEVICE_H
#define DDP_BENCH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* Get how many GPUs this process sees, and the driver's CUDA, as 12040 for
 * 12.4. */
int device_count(uint32_t *count, int *version, struct ddp_error *error);

/*
 * Choose the GPU: the only visible one, or else the local rank's; with share,
 * local ranks beyond the number of GPUs begin again at the first. Its context
 * becomes the thread's, and name is set, as "0000:1b:00.0 NVIDIA H200".
 */
int device_open(int local_rank, bool share, char *name, size_t size,
		struct ddp_error *error);
void device_close(void);

void *device_reserve(size_t size, struct ddp_error *error);
void device_release(void *memory);

/* Copy, and wait until that is done. */
int device_put(void *memory, const void *from, size_t size,
	       struct ddp_error *error);
int device_get(void *to, const void *memory, size_t size,
	       struct ddp_error *error);

/*
 * The stream that device_open made, and whether all that was enqueued in it is
 * done: 1, or 0: not yet, or -1 with error set.
 */
void *device_stream(void);
int device_query(struct ddp_error *error);

#endif
