/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx, as far as a job needs it, with deadlines that hold. PMIx's own cannot:
 * PMIX_TIMEOUT covers only the arrival of local ranks. So nothing here blocks
 * in PMIx for what a peer has to do: what waits is memory of its own, which
 * outlives a late callback.
 *
 * Deadlines are those of ddp_clock_ms. A NULL text or number is as PMIx has it:
 * the launcher does not tell.
 */
#ifndef DDP_JOB_CLIENT_H
#define DDP_JOB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/wait.h"
#include "layout/error.h"

struct ddp_client;

/* What the launcher says of the whole job and of this rank; the texts are the
 * caller's to free. */
struct ddp_client_facts {
	uint32_t rank, size;
	uint32_t local_rank, local_size;	/* UINT32_MAX: not told */
	char *node_list, *mapping;		/* NULL: not told */
};

/* Whether a launcher offers PMIx to this process. */
bool ddp_client_is_offered(void);

/*
 * Join, unless this process has; NULL on error. The same client serves all jobs
 * of a process, one after the other, and leaves PMIx when the process exits: a
 * server whose ranks leave and come again loses what is under way for others on
 * its node, and an MPI_Init cannot follow.
 */
struct ddp_client *ddp_client_open(int64_t deadline, struct ddp_error *error);

int ddp_client_get_facts(struct ddp_client *client, int64_t deadline,
			 struct ddp_client_facts *facts,
			 struct ddp_error *error);

/* The host of a rank, for the caller to free; NULL on error. */
char *ddp_client_get_host(struct ddp_client *client, uint32_t rank,
			  int64_t deadline, struct ddp_error *error);

/*
 * Write two values that lie behind each other at bytes, each under its key (one
 * of size 0 is left out), for other ranks to get after a fence.
 */
int ddp_client_publish(struct ddp_client *client, const char keys[2][32],
		       const void *bytes, const size_t sizes[2],
		       int64_t deadline, struct ddp_error *error);

/* Wait until all ranks are here, and collect what they have put. An error is a
 * TIMEOUT or PMIX, and in either case PMIx is of no more use. */
int ddp_client_fence(struct ddp_client *client, int64_t deadline,
		     struct ddp_error *error);

/*
 * A rank's bytes, for the caller to free; NULL on error. Any number may be
 * begun before the first is ended. local: only if they are at hand.
 */
struct ddp_wait *ddp_client_begin_get(struct ddp_client *client, uint32_t rank,
				      const char *key, bool local);
void *ddp_client_end_get(struct ddp_wait *wait, size_t *size, int64_t deadline,
			 struct ddp_error *error);

/* End all ranks; returns if PMIx does not within 5 s. */
void ddp_client_abort(int code, const char *text);

#endif
