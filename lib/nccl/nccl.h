/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/nccl implements ddp_nccl.h. create.c has what a program calls; setup.c
 * does one such call: library.c and cuda.c look up NCCL and the driver, card.c
 * and census.c check that all ranks can take part, roster.c says who is in a
 * communicator, init.c makes it; destroy.c ends it, await.c waits. It stands on
 * lib/job and lib/util. Read setup.h first.
 *
 * Here: NCCL's types, declared as nccl.h has them, so that libddp is built
 * without NCCL and CUDA.
 */
#ifndef DDP_NCCL_NCCL_H
#define DDP_NCCL_NCCL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct {
	char internal[128];
} ncclUniqueId;

/* The part that 2.18 and later share. A caller's is longer: size says so. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs, maxCTAs;		/* blocks of threads */
} ncclConfig_t;

/*
 * NCCL checks the magic, and that the version has "blocking" (init.cc,
 * parseCommConfig). It takes its own defaults for what lies beyond size, what
 * the version did not have, and what is UNDEFINED.
 */
#define DDP_NCCL_CONFIG_MAGIC 0xcafebeef	/* more than an enum's int */
enum { DDP_NCCL_CONFIG_VERSION = 21400, DDP_NCCL_CONFIG_CTAS = 21700,
       DDP_NCCL_UNDEFINED = INT_MIN };

#define DDP_NCCL_TYPES
#include "ddp_nccl.h"

/* ncclResult_t, of which only these are told apart. */
enum {
	DDP_NCCL_SUCCESS = 0,
	DDP_NCCL_CUDA_ERROR = 1,	/* ncclUnhandledCudaError */
	DDP_NCCL_IN_PROGRESS = 7
};

#endif
