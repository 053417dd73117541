/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives a job what it needs of PMIx, with deadlines that hold. PMIx's own do
 * not: PMIX_TIMEOUT covers only the arrival of local ranks. So nothing here
 * blocks in PMIx for what a peer has to do; a callback that comes too late
 * finds its memory still there (wait.h).
 *
 * Deadlines are those of ddp_clock_ms. Where the launcher does not know a text
 * or a number, the text is NULL and the number UINT32_MAX.
 */
#ifndef DDP_JOB_CLIENT_H
#define DDP_JOB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct ddp_client;
struct ddp_wait;

/*
 * The launcher's facts about the job and this rank. The caller frees the texts.
 */
struct ddp_client_facts {
	uint32_t rank, size;
	uint32_t local_rank, local_size;
	char *node_list, *mapping;
};

/* Returns true if a launcher offers PMIx to this process. */
bool ddp_client_is_offered(void);

/*
 * Join, unless this process has joined already; NULL on error. One client
 * serves all jobs of a process, one after the other, and leaves PMIx when the
 * process exits. It must not leave earlier: a server whose ranks leave and come
 * again drops what it was doing for others on its node, and MPI_Init would fail
 * afterwards.
 */
struct ddp_client *ddp_client_open(int64_t deadline, struct ddp_error *error);

int ddp_client_get_facts(struct ddp_client *client, int64_t deadline,
			 struct ddp_client_facts *facts,
			 struct ddp_error *error);

/* The host of a rank; the caller frees it. NULL on error. */
char *ddp_client_get_host(struct ddp_client *client, uint32_t rank,
			  int64_t deadline, struct ddp_error *error);

/*
 * Publish two values, which follow each other at bytes, each under its key, for
 * other ranks to get after a fence. A value of size 0 is left out.
 */
int ddp_client_publish(struct ddp_client *client, const char keys[2][32],
		       const void *bytes, const size_t sizes[2],
		       int64_t deadline, struct ddp_error *error);

/* Wait until all ranks are here, and collect what they have published. After an
 * error (TIMEOUT or PMIX) PMIx cannot be used any more. */
int ddp_client_fence(struct ddp_client *client, int64_t deadline,
		     struct ddp_error *error);

/* The place to look for another rank's value. */
enum ddp_client_source {
	DDP_CLIENT_HERE,	/* in this process, where it may be an older
				 * one; it asks no server */
	DDP_CLIENT_NODE,	/* at the server; the rank is on this node */
	DDP_CLIENT_REMOTE	/* at the server; it is on another node */
};

/* Get a rank's bytes, which the caller frees; NULL on error. Any number may be
 * begun before the first is ended. */
struct ddp_wait *ddp_client_begin_get(struct ddp_client *client, uint32_t rank,
				      const char *key,
				      enum ddp_client_source source);
void *ddp_client_end_get(struct ddp_wait *wait, size_t *size, int64_t deadline,
			 struct ddp_error *error);

/* End all ranks. Returns if PMIx has not done so within 5 s. */
void ddp_client_abort(int code, const char *text);

#endif
