/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what NCCL does, with a deadline. */
#ifndef DDP_NCCL_AWAIT_H
#define DDP_NCCL_AWAIT_H

#include <stdint.h>

#include "nccl/library.h"

/*
 * Wait until a communicator has no call in progress. Returns 0, or -1:
 * DDP_ERROR_TIMEOUT, or what went wrong in the call. what is for its text.
 */
int ddp_await_comm(const struct ddp_nccl *nccl, ncclComm_t comm,
		   const char *what, int64_t deadline, struct ddp_error *error);

/*
 * Wait a little between two looks at what NCCL or a stream does; *round counts
 * from 0: first only yields, for about 100 us, later sleeps for up to 1 ms.
 */
void ddp_await_pause(unsigned int *round);

#endif
