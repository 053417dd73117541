/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective of GPUs. The ranks meet as a job of libddp, over PMIx; once
 * they have memory, libddp makes two communicators of NCCL. By one, reduce.c
 * exchanges buckets, in the queue beside the operators; by the other, nccl.c
 * exchanges what the host compares, in a third queue, so that neither waits for
 * the other. Events order the queues, and the host waits for none of them,
 * except where it needs an answer. The run ends where one does not come.
 *
 * Here: what these share. NCCL's own header is lib/nccl/nccl.h.
 */
#ifndef DDP_TRAIN_NCCL_RANKS_H
#define DDP_TRAIN_NCCL_RANKS_H

#include <stdbool.h>

#include "collective.h"
#include "nccl/nccl.h"
#include "step/bucket.h"

/* The collective's events: agree()'s, and two of each ticket under way. */
enum ticket_event { TICKET_READY, TICKET_DONE, TICKET_SET };
enum {
	AGREE_EVENT = COLLECTIVE_EVENTS,
	TICKET_EVENTS = COLLECTIVE_EVENTS + 1,
	TICKETS = (DEVICE_EVENTS - TICKET_EVENTS) / TICKET_SET
};

/* How long this rank has waited for others. All 0 before a wait. */
struct wait {
	double clock, waited;		/* seconds; clock 0: not yet looked at */
};

struct nccl {
	struct collective *collective;
	struct ddp_job *job;
	const struct ddp_nccl *library;
	struct ddp_nccl_calls calls;
	ncclComm_t buckets, agreed;	/* communicators of all ranks */
	bool connected;			/* on every rank */

	struct device *device;
	char *buffer;			/* what alloc() gives */
	bool deterministic;
	float *parts;			/* if so: every rank's values of this
					   rank's slice */
	char *records;			/* [ranks][COLLECTIVE_RECORD], device */
	char *staging;			/* the same, where the host reads */

	uint64_t started, done;		/* tickets, at most TICKETS apart */
	struct wait wait;		/* for ticket done + 1 */
	double looked;			/* when NCCL was last asked for errors */
};

static inline int nccl_find_event(uint64_t ticket, enum ticket_event event)
{
	return TICKET_EVENTS + (int)(ticket % TICKETS) * TICKET_SET +
	       (int)event;
}

/* reduce.c: enqueue what op does with count values at `at`. */
void nccl_move(struct nccl *nccl, enum collective_op op, char *at,
	       size_t count, enum device_type type);

/* Bytes of `parts` where a start() has up to `largest` bytes. */
size_t nccl_count_parts(const struct collective *collective, size_t largest);

/*
 * nccl.c: after a call of NCCL, wait until it has enqueued its work. Ends the
 * run if it fails.
 */
void nccl_finish(struct nccl *nccl, ncclComm_t comm, const char *call,
		 int result);

#endif
