/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver, libcuda.so.1, which is loaded at run time: a node can be
 * without, and the CUDA runtime would be a second copy beside the program's.
 * Any thread may call these.
 */
#ifndef DDP_NCCL_DRIVER_H
#define DDP_NCCL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* CUresult, of which only these are told apart. */
enum {
	DDP_DRIVER_SUCCESS = 0,
	DDP_DRIVER_NO_DEVICE = 100,	/* cuInit: a driver, and no GPU */
	DDP_DRIVER_NOT_READY = 600
};

/*
 * Its functions (CUDA Driver API). A CUcontext and a CUstream are a void *, a
 * CUdevice is an int, a CUdeviceptr an integer of a pointer's size, and a
 * CUresult an int. The first two may be NULL, and so may those of memory, unless
 * ddp_driver_check_memory says that they are there.
 */
struct ddp_driver {
	int (*get_uuid)(unsigned char *uuid, int device);
	int (*get_version)(int *version);
	int (*init)(unsigned int flags);
	int (*count_devices)(int *count);
	int (*get_device)(int *device, int ordinal);
	int (*get_name)(char *name, int size, int device);
	int (*get_bus_id)(char *text, int size, int device);
	int (*get_context)(void **context);
	int (*get_current)(int *device);
	int (*query_stream)(void *stream);
	int (*get_error)(int result, const char **text);
	/* contexts, memory and streams of one's own */
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*alloc)(uintptr_t *memory, size_t size);
	int (*free)(uintptr_t memory);
	int (*put)(uintptr_t to, const void *from, size_t size);
	int (*get)(void *to, uintptr_t from, size_t size);
	int (*create_stream)(void **stream, unsigned int flags);
	int (*destroy_stream)(void *stream);
};

/*
 * Set by the first ddp_driver_load; the library stays loaded. Its functions, and
 * what follows here, may be called after that has returned 0.
 */
extern struct ddp_driver ddp_driver;

/*
 * Returns 0 if it can be called. If there is no such library, returns 1 with
 * the loader's words between before and after in error; if it is another one,
 * -1 with error set.
 */
int ddp_driver_load(const char *before, const char *after,
		    struct ddp_error *error);

/* Returns 0 if it has the functions for memory, or -1 with error set. */
int ddp_driver_check_memory(struct ddp_error *error);

/* The driver's words for a CUresult. */
const char *ddp_driver_words(int result);

/* Report what failed as "CALL: the driver's words". Returns -1. */
int ddp_driver_fail(const char *call, int result, struct ddp_error *error);

struct ddp_gpu_id;

/*
 * The calling thread's GPU, also one of AMD's, by HIP, where there is no CUDA
 * driver. This and the next load what they need themselves. Returns 0; or -1 if
 * there is none, or the thread has chosen none.
 */
int ddp_cuda_get_current(struct ddp_gpu_id *gpu, struct ddp_error *error);

/* 1: all that was enqueued is done; 0: not yet; -1: an error. */
int ddp_cuda_query_stream(void *stream, struct ddp_error *error);

/* ---- the functions of any library that is loaded at run time, by a table */

struct ddp_symbol {
	const char *name;
	void *function;		/* address of the function pointer to set */
	bool optional;		/* the library may lack it: pointer unchanged */
};

/*
 * Set the function pointers of a table from a handle of dlopen. Where two
 * entries set the same pointer, the later one that the library has wins.
 * Returns NULL, or the name of the first entry that is missing.
 */
const char *ddp_symbols_find(void *handle, const struct ddp_symbol *symbols,
			     size_t count);

#endif
