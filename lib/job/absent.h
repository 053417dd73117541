/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks did not come to an exchange. */
#ifndef DDP_JOB_ABSENT_H
#define DDP_JOB_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ddp.h"

/* After a fence that did not end in time: set why to a sentence that names the
 * ranks that did not come, as far as PMIx knows them. */
void ddp_absent_explain(const struct ddp_job *job, int64_t waited_ms,
			struct ddp_error *why);

/*
 * Find out within ms which of ranks[count], this rank not among them, have
 * given a record to the present exchange: sets here[rank], which is left alone
 * if memory is short. Where all ranks of a large job ask for all, the servers
 * may have no answer in time.
 */
void ddp_absent_ask(const struct ddp_job *job, const uint32_t *ranks,
		    uint32_t count, int64_t ms, bool *here);

#endif
