/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks did not come to an exchange. */
#ifndef DDP_JOB_ABSENT_H
#define DDP_JOB_ABSENT_H

#include <stdint.h>

#include "ddp.h"

/* After a fence that did not end in time: set why to a sentence that names the
 * ranks that did not come, as far as PMIx knows them. */
void ddp_absent_explain(const struct ddp_job *job, int64_t waited_ms,
			struct ddp_error *why);

#endif
