/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libddp's other parts need of a job beyond ddp.h: time, the lock of
 * collectives, and the exchange on which all collectives rest.
 *
 * A collective goes: ddp_job_begin, any number of exchanges, ddp_job_end. An
 * exchange: each rank puts one record, which is one PMIx fence with data, and
 * then gets those of the ranks that it wants. Every rank must put as often as
 * every other; who gets what is each rank's own affair.
 */
#ifndef DDP_BOOT_JOB_H
#define DDP_BOOT_JOB_H

#include <stdint.h>

#include "ddp.h"
#include "layout/error.h"

#define DDP_CLOCK_NEVER INT64_MAX	/* the deadline that never passes */

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t ddp_clock_ms(void);

/*
 * When a call that begins now must have ended, on that clock. timeout_ms is as
 * in the public structs: 0: the job's own; below 0: DDP_CLOCK_NEVER. job NULL:
 * 0 is the default of 300,000.
 */
int64_t ddp_job_deadline(const struct ddp_job *job, int32_t timeout_ms);

/*
 * Begin a collective: one at a time in a process; others wait until their
 * deadline. Fails, with the error that ended it, where the job has ended; and
 * then ddp_job_end must not be called. Returns 0, or -1.
 */
int ddp_job_begin(struct ddp_job *job, int64_t deadline,
		  struct ddp_error *error);
void ddp_job_end(struct ddp_job *job);

/*
 * Collective, between begin and end: publish size bytes (0 to DDP_RECORD_MAX;
 * ranks may differ) and wait until every rank has done so. A failure ends the
 * job, except for DDP_ERROR_ARGUMENT and DDP_ERROR_SYSTEM, after which nothing
 * is published. Returns 0, or -1.
 */
int ddp_exchange_put(struct ddp_job *job, const void *record, size_t size,
		     int64_t deadline, struct ddp_error *error);

/*
 * Local, after ddp_exchange_put and before the next: copy a rank's record, its
 * own included, into room bytes at buffer; *size gets its length. A record that
 * does not fit, or is not that rank's of this exchange, is an error
 * (DDP_ERROR_PEER, DDP_ERROR_PMIX) that does not end the job; a deadline that
 * has passed does. Returns 0, or -1. Costs 10 to 60 us.
 */
int ddp_exchange_get(struct ddp_job *job, uint32_t rank, void *buffer,
		     size_t room, size_t *size, int64_t deadline,
		     struct ddp_error *error);

/* Set the native code of an error that ddp_error_set has filled. Returns -1. */
static inline int ddp_error_native(struct ddp_error *error, int native)
{
	if (error != NULL)
		error->native = native;
	return -1;
}

#endif
