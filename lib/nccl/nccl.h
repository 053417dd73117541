/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/nccl implements ddp_nccl.h. setup.c does a call that makes communicators:
 * library.c and driver.c look up NCCL and the driver, id.c makes unique ids,
 * census.c checks that all ranks can take part and says who is in a
 * communicator, comm.c makes one, waits for it and ends it. It stands on lib/job
 * and lib/util. Read setup.h first.
 *
 * Here: NCCL's types, declared as nccl.h has them, so that libddp is built
 * without NCCL and CUDA; and its functions, looked up at run time.
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
#include "util/error.h"

/* ncclResult_t, of which only these are told apart. */
enum {
	DDP_NCCL_SUCCESS = 0,
	DDP_NCCL_CUDA_ERROR = 1,	/* ncclUnhandledCudaError */
	DDP_NCCL_IN_PROGRESS = 7
};

enum {
	DDP_NCCL_OLDEST = 21800,	/* has usable non-blocking calls */
	/*
	 * An NCCL before this one keeps a call in progress in the thread that
	 * began it (__thread ncclGroupJobMain in group.cc). That thread must
	 * finalise or abort, and live until then.
	 */
	DDP_NCCL_ANY_THREAD = 22700,
	/* An NCCL before this one does not end a call that has succeeded when
	 * it is asked for the communicator's error: see ddp_await_look(). */
	DDP_NCCL_LOOK_ENDS = 22600
};

struct ddp_nccl {
	const char *path;
	int version;			/* 22809 for 2.28.9 */
	int (*get_version)(int *version);
	int (*get_unique_id)(ncclUniqueId *id);
	int (*init_rank)(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
			 ncclConfig_t *config);
	int (*init_scalable)(ncclComm_t *comm, int size, int rank, int id_count,
			     ncclUniqueId *ids, ncclConfig_t *config);
					/* NULL where it is missing */
	int (*get_async_error)(ncclComm_t comm, int *result);
	int (*count)(ncclComm_t comm, int *count);
	int (*finalize)(ncclComm_t comm);
	int (*destroy)(ncclComm_t comm);
	int (*abort)(ncclComm_t comm);
	int (*group_end)(void);
	const char *(*get_error_string)(int result);
	const char *(*get_last_error)(ncclComm_t comm);
};

/*
 * Look NCCL up, unless that has been done, and check that there is one copy.
 * Any thread may call this. Borrowed for ever; NULL on errors, and a later call
 * tries again.
 */
const struct ddp_nccl *ddp_nccl_get(struct ddp_error *error);

/* Set error to what NCCL returned in a call, which is named. Returns -1. */
int ddp_nccl_set_error(struct ddp_error *error, const struct ddp_nccl *nccl,
		       const char *call, int result);

/*
 * Let ranks share a GPU: give this one an NCCL_HOSTID of its own, unless the
 * user has set it. NCCL reads the variable once, so this is an error after
 * ddp_nccl_note_use, which is called before a communicator is made. Returns 0,
 * or -1.
 */
int ddp_nccl_share_gpu(uint32_t rank, struct ddp_error *error);
void ddp_nccl_note_use(void);

/* ---- what moves data, for the tools: libddp itself moves none */

/* ncclDataType_t and ncclRedOp_t, of which the tools need these. */
enum {
	DDP_NCCL_INT32 = 2, DDP_NCCL_HALF = 6, DDP_NCCL_FLOAT = 7,
	DDP_NCCL_BFLOAT16 = 9
};
enum { DDP_NCCL_SUM = 0 };

struct ddp_nccl_calls {
	int (*all_reduce)(const void *send, void *receive, size_t count,
			  int type, int op, ncclComm_t comm, void *stream);
	int (*reduce_scatter)(const void *send, void *receive, size_t count,
			      int type, int op, ncclComm_t comm, void *stream);
	int (*all_gather)(const void *send, void *receive, size_t count,
			  int type, ncclComm_t comm, void *stream);
	int (*broadcast)(const void *send, void *receive, size_t count,
			 int type, int root, ncclComm_t comm, void *stream);
	int (*send)(const void *send, size_t count, int type, int peer,
		    ncclComm_t comm, void *stream);
	int (*receive)(void *receive, size_t count, int type, int peer,
		       ncclComm_t comm, void *stream);
	int (*split)(ncclComm_t comm, int color, int key, ncclComm_t *made,
		     ncclConfig_t *config);
	int (*group_start)(void);
	int (*group_end)(void);
};

/* Set all of them, once the library is there. Returns 0, or -1. */
int ddp_nccl_find_calls(const struct ddp_nccl *nccl,
			struct ddp_nccl_calls *calls, struct ddp_error *error);

#endif
