/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NCCL of this process: found at run time, called through a table.
 */
#ifndef DDP_NCCL_LIBRARY_H
#define DDP_NCCL_LIBRARY_H

#include <stdint.h>

#include "layout/error.h"
#include "nccl/nccl.h"

#define DDP_NCCL_OLDEST 21800	/* whose non-blocking calls are served */
#define DDP_NCCL_SCALABLE 22300	/* has ncclCommInitRankScalable */
/* Before it, what a thread has under way without blocking is kept in that
 * thread: it must live until that has ended, so others must not finalise or
 * abort (__thread ncclGroupJobMain in group.cc). */
#define DDP_NCCL_ANY_THREAD 22700

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
	int (*finalize)(ncclComm_t comm);
	int (*destroy)(ncclComm_t comm);
	int (*abort)(ncclComm_t comm);
	int (*group_end)(void);
	const char *(*get_error_string)(int result);
	const char *(*get_last_error)(ncclComm_t comm);
};

/*
 * Look NCCL up, unless that has been done, and see that there is one copy. By
 * any thread. Borrowed for ever; NULL on errors, and a later call tries again.
 */
const struct ddp_nccl *ddp_nccl_get(struct ddp_error *error);

/* Fill error from what an NCCL function named call returned. Returns -1. */
int ddp_nccl_set_error(struct ddp_error *error, const struct ddp_nccl *nccl,
		       const char *call, int result);

/*
 * Take an id that no rank has connected to, and, where it turns out that none
 * will, give it back: its listener then serves the next call, as NCCL has no
 * way to close it. By any thread. Take returns 0, or -1.
 */
int ddp_nccl_take_id(const struct ddp_nccl *nccl, ncclUniqueId *id,
		     struct ddp_error *error);
void ddp_nccl_return_id(const ncclUniqueId *id);

/*
 * Let ranks share a GPU: give this one an NCCL_HOSTID, unless the user has set
 * it. An error after ddp_nccl_note_use, which comes before a communicator is
 * made: NCCL reads the variable once. Returns 0, or -1.
 */
int ddp_nccl_share_gpu(uint32_t rank, struct ddp_error *error);
void ddp_nccl_note_use(void);

#endif
