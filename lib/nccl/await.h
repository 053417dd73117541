/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for what NCCL does, with a deadline. */
#ifndef DDP_NCCL_AWAIT_H
#define DDP_NCCL_AWAIT_H

#include <stdint.h>

#include "nccl/library.h"

/*
 * The state of a communicator's latest call: DDP_NCCL_IN_PROGRESS, or its
 * result. From NCCL 2.19 on a call that has succeeded is over then, and its
 * thread may use or make another communicator. One thread at a time may look at
 * a communicator.
 */
int ddp_await_look(const struct ddp_nccl *nccl, ncclComm_t comm);

/*
 * Wait until a communicator has no call in progress. Returns 0; or -1 after the
 * deadline (DDP_ERROR_TIMEOUT) or if the call failed. what names it in the
 * text.
 */
int ddp_await_comm(const struct ddp_nccl *nccl, ncclComm_t comm,
		   const char *what, int64_t deadline, struct ddp_error *error);

/*
 * Wait a little before asking NCCL or a stream again. *round counts the calls
 * from 0: the first ones only yield, for about 100 us together; later ones
 * sleep up to 1 ms each.
 */
void ddp_await_pause(unsigned int *round);

#endif
