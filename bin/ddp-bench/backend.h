/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A backend moves the data; it is a table of functions. Every rank calls the
 * same ones in the same order, from one thread, except those called local. A
 * function without an error to set ends all ranks, with a sentence, if it
 * fails.
 */
#ifndef DDP_BENCH_BACKEND_H
#define DDP_BENCH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pattern.h"
#include "util/error.h"

/*
 * One collective. In place, send and receive are the same, the larger of the
 * two buffers. All-gather then sends, and reduce-scatter writes, the rank's own
 * part of it, at rank * count.
 */
struct call {
	enum collective collective;
	enum type type;
	enum redop redop;
	int root;
	size_t count;		/* of struct shape */
	void *send, *receive;
};

struct backend {
	const char *name;

	/* Reduce-scatter in place writes to the beginning, as MPI's does. */
	bool scatters_to_start;

	/* The most elements of one call. */
	size_t count_max;

	/* Meet the other ranks, and do no more. Call it once, first. */
	int (*open)(int *rank, int *size, struct ddp_error *error);

	/* Local: choose a device and name it. */
	int (*prepare)(int local_rank, int local_size, bool share,
		       char *device, size_t size, struct ddp_error *error);

	/* Make a communicator, once all ranks are prepared; and what else run
	 * and exchange need, once all have one. ready may be NULL. */
	int (*connect)(struct ddp_error *error);
	int (*ready)(struct ddp_error *error);

	/* Put rank r's size bytes of mine to all + r * size; not by what is
	 * measured, if there is anything else. */
	void (*gather)(const void *mine, void *all, size_t size);
	void (*barrier)(void);

	/* Local: reserve memory of the device, once. put and get wait. */
	void *(*reserve)(size_t size, struct ddp_error *error);
	void (*release)(void *buffer);
	void (*put)(void *buffer, const void *from, size_t size);
	void (*get)(void *to, const void *buffer, size_t size);

	/* Begin a collective; begin an exchange with one rank, which calls it
	 * too; wait for what has begun. */
	void (*run)(const struct call *call);
	void (*exchange)(int peer, const void *send, void *receive,
			 size_t size);
	void (*wait)(void);

	/* Local: describe the library, as "Open MPI 4.1.4". */
	void (*describe)(char *text, size_t size);

	/* Call it once, last, on every rank that has opened it. */
	void (*close)(void);

	/* Local: end every rank, with this sentence; does not return. */
	void (*abort)(const char *sentence);
};

/* If the build lacks the library, open fails and the rest is NULL. */
extern const struct backend backend_mpi, backend_nccl;

/*
 * ---- the GPU of this process (nccl.c)
 *
 * It is used through libcuda.so.1, which is found at run time. Functions that
 * return int return 0, or -1 with error set. All are about the GPU that
 * device_open chose.
 */

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

#endif
