/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_JUDGE_H
#define DDP_SUPERVISOR_JUDGE_H

#include "supervisor/attempt.h"

/* Decide who has failed first, once that is clear, and say it. */
void ddp_judge_tick(struct ddp_attempt *attempt, int64_t now_ns);

/* The same at the end of the step, of what is known only then. */
void ddp_judge_end(struct ddp_attempt *attempt);

#endif
