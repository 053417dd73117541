/* SPDX-License-Identifier: BSD-3-Clause */
/* How the calls on a communicator are awaited, and how it ends. */
#ifndef DDP_BOOT_END_H
#define DDP_BOOT_END_H

#include <stdint.h>

#include "boot/nccl.h"

/*
 * Wait until a communicator has no call in progress. Returns 0, or -1:
 * DDP_ERROR_TIMEOUT, or what went wrong in the call. what is for its text.
 */
int ddp_end_await(const struct ddp_nccl *nccl, ncclComm_t comm,
		  const char *what, int64_t deadline, struct ddp_error *error);

/*
 * Abort a communicator by deadline, in a thread of its own where this NCCL lets
 * another than its maker's do so. Returns 0, or -1. Gone in either case.
 */
int ddp_end_abort(const struct ddp_nccl *nccl, ncclComm_t comm,
		  int64_t deadline, struct ddp_error *error);

/* The same after another error, which is the one to report. NULL is allowed.
 * One that is begun after by is left to its thread at once. */
void ddp_end_quietly(const struct ddp_nccl *nccl, ncclComm_t comm, int64_t by);

#endif
