/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_UNTOLD_H
#define DDP_SUPERVISOR_UNTOLD_H

#include "supervisor/attempt.h"

/* Find a failure of which no agent tells, and say that the step ends for it. */
void ddp_untold_tick(struct ddp_attempt *attempt, int64_t now_ns);

#endif
