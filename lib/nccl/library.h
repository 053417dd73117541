/* SPDX-License-Identifier: BSD-3-Clause */
/* The NCCL of this process: looked up at run time, called through a table. */
#ifndef DDP_NCCL_LIBRARY_H
#define DDP_NCCL_LIBRARY_H

#include <stdint.h>

#include "nccl/nccl.h"
#include "util/error.h"

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
 * Take an id that no rank has connected to; return it if it turns out that none
 * will. NCCL cannot close an id's listener, so the next call uses it. Any
 * thread may call these. Take returns 0, or -1.
 */
int ddp_nccl_take_id(const struct ddp_nccl *nccl, ncclUniqueId *id,
		     struct ddp_error *error);
void ddp_nccl_return_id(const ncclUniqueId *id);

/*
 * Let ranks share a GPU: give this one an NCCL_HOSTID of its own, unless the
 * user has set it. NCCL reads the variable once, so this is an error after
 * ddp_nccl_note_use, which is called before a communicator is made. Returns 0,
 * or -1.
 */
int ddp_nccl_share_gpu(uint32_t rank, struct ddp_error *error);
void ddp_nccl_note_use(void);

#endif
