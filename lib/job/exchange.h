/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange, of which all collectives are made. Each rank puts one record,
 * which is one PMIx fence with data, and then gets the records that it wants.
 * All ranks must put equally often; each may get what it likes.
 */
#ifndef DDP_JOB_EXCHANGE_H
#define DDP_JOB_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

/*
 * Collective, between ddp_job_begin and ddp_job_end: publish size bytes (0 to
 * DDP_RECORD_MAX; ranks may differ) and wait until every rank has done so. A
 * failure ends the job, except for DDP_ERROR_ARGUMENT and DDP_ERROR_SYSTEM:
 * then nothing was published. Returns 0, or -1.
 */
int ddp_exchange_put(struct ddp_job *job, const void *record, size_t size,
		     int64_t deadline, struct ddp_error *error);

/*
 * Local, after ddp_exchange_put and before the next one: copy the record of a
 * rank, also of this one, into room bytes at buffer, and set *size to its
 * length. A record that does not fit, or is not that rank's of this exchange,
 * is an error (DDP_ERROR_PEER, DDP_ERROR_PMIX) that does not end the job; a
 * deadline that has passed does. Returns 0, or -1. Costs 10 to 60 us with PMIx
 * 4, and 80 to 300 us with PMIx 5, which asks the node's server.
 */
int ddp_exchange_get(struct ddp_job *job, uint32_t rank, void *buffer,
		     size_t room, size_t *size, int64_t deadline,
		     struct ddp_error *error);

#endif
