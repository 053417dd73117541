/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a communicator: destroyed in order, or aborted. */
#ifndef DDP_NCCL_DESTROY_H
#define DDP_NCCL_DESTROY_H

#include <stdint.h>

#include "nccl/library.h"

/*
 * Abort a communicator until a deadline, in another thread if this NCCL allows
 * that. Returns 0, or -1. The communicator is gone in either case.
 */
int ddp_destroy_abort(const struct ddp_nccl *nccl, ncclComm_t comm,
		      int64_t deadline, struct ddp_error *error);

/* The same after an error that is to be reported instead of this one's. NULL is
 * allowed. After the deadline it begins, but does not wait. */
void ddp_destroy_quietly(const struct ddp_nccl *nccl, ncclComm_t comm,
			 int64_t deadline);

/*
 * The same of communicators whose kernels may all wait for ranks. NCCL frees
 * what one has when the whole GPU is idle, and so not before the others are
 * aborted too: all are begun before this waits for one.
 */
void ddp_destroy_all_quietly(const struct ddp_nccl *nccl,
			     const ncclComm_t *comms, int count,
			     int64_t deadline);

#endif
