/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one communicator from its ids, without blocking, until a deadline. */
#ifndef DDP_NCCL_INIT_H
#define DDP_NCCL_INIT_H

#include <stdint.h>

#include "nccl/library.h"
#include "nccl/roster.h"

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

#endif
