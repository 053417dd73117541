/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has not come to an exchange. */
#ifndef DDP_JOB_ABSENT_H
#define DDP_JOB_ABSENT_H

#include <stdint.h>

#include "ddp.h"

/* Once a fence has failed, which ends the job: say for whom it was waited that
 * long, as far as PMIx can tell. */
void ddp_absent_explain(const struct ddp_job *job, int64_t waited_ms,
			struct ddp_error *why);

#endif
