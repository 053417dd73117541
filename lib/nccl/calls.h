/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL's calls that move data, for the tools: looked up in the library that
 * libddp has chosen, as nccl.h of all versions from 2.18 on has them. libddp
 * itself moves none.
 */
#ifndef DDP_NCCL_CALLS_H
#define DDP_NCCL_CALLS_H

#include "nccl/library.h"

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
