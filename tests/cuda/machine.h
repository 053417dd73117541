/* SPDX-License-Identifier: BSD-3-Clause */
/* A FAKE CUDA runtime: machines that are not at hand, and what is taken. */
#ifndef DDP_TEST_MACHINE_H
#define DDP_TEST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/cuda.h"

/* What the fake runtime answers. */
struct machine {
	cudaError_t counting;		/* of cudaGetDeviceCount */
	int count, driver, major, minor;
	cudaError_t setting;		/* of cudaSetDevice */
	cudaError_t kernel;		/* of each launch */
	cudaError_t later;		/* of work that is waited for */
	size_t room, pinned_room;	/* in MiB */
	bool no_products;
};

/* The machine that runs. */
extern struct machine now;

/* Of its memory, in bytes. */
extern size_t used, pinned;

/* What exists, and the streams that are not as they should be. */
extern int mallocs, events, streams, odd_streams;

/* The thread's GPU. */
extern _Thread_local int current;

#endif
