/* SPDX-License-Identifier: BSD-3-Clause */
/* These functions make a communicator from its unique ids, wait, and end it. */
#ifndef DDP_NCCL_COMM_H
#define DDP_NCCL_COMM_H

#include <stdint.h>

#include "nccl/census.h"
#include "nccl/nccl.h"

/*
 * A copy of the caller's config (NULL: NCCL's defaults), but without blocking;
 * the caller frees it. NULL on errors.
 */
ncclConfig_t *ddp_init_copy_config(const ncclConfig_t *config,
				   struct ddp_error *error);

/*
 * Collective over the ranks of the roster, which all have the same ids, one for
 * each root. name, such as "world", is for errors. Returns 0; or -1, and *comm
 * is NULL or what the caller must abort.
 */
int ddp_init_comm(const struct ddp_nccl *nccl, const struct ddp_roster *roster,
		  ncclUniqueId *ids, ncclConfig_t *config, const char *name,
		  int64_t deadline, ncclComm_t *comm, struct ddp_error *error);

/* ---- waiting */

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

/* ---- the end */

/*
 * Abort a communicator until a deadline, in another thread if this NCCL allows
 * that, after an error that is to be reported instead of this one's. NULL is
 * allowed. After the deadline it begins, but does not wait. The communicator is
 * gone in any case.
 */
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
