/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds which ranks did not come to an exchange, and names them. */
#ifndef DDP_JOB_ABSENT_H
#define DDP_JOB_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ddp.h"
#include "util/text.h"

/* Set why, after a fence that did not end in time, to a sentence that names the
 * ranks that did not come, as far as PMIx knows them. */
void ddp_absent_explain(const struct ddp_job *job, int64_t waited_ms,
			struct ddp_error *why);

/*
 * Add the ranks that are not here[job size], as "rank 3 on n1, ranks 5-7 on n2
 * and 4 more": `most` runs of ranks are named.
 */
void ddp_absent_format(const struct ddp_job *job, const bool *here,
		       uint32_t most, struct ddp_text *text);

#endif
