/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a communicator: destroyed in order, or aborted. */
#ifndef DDP_NCCL_DESTROY_H
#define DDP_NCCL_DESTROY_H

#include <stdint.h>

#include "nccl/library.h"

/*
 * Abort a communicator by deadline, in a thread of its own where this NCCL lets
 * another than its maker's do so. Returns 0, or -1. Gone in either case.
 */
int ddp_destroy_abort(const struct ddp_nccl *nccl, ncclComm_t comm,
		      int64_t deadline, struct ddp_error *error);

/* The same after another error, which is the one to report. NULL is allowed.
 * One that is begun after by is left to its thread at once. */
void ddp_destroy_quietly(const struct ddp_nccl *nccl, ncclComm_t comm,
			 int64_t by);

#endif
