/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ACT_H
#define DDP_SUPERVISOR_ACT_H

#include "supervisor/attempt.h"

/* Does what follows from the facts now. */
void ddp_act_tick(struct ddp_attempt *attempt, int64_t now_ns);

/* Returns true if srun has ended, and nothing is left to wait for. */
bool ddp_act_is_over(struct ddp_attempt *attempt, int64_t now_ns);

/* Says at the end what is known only then, and waits until it is written. */
void ddp_act_end(struct ddp_attempt *attempt);

/* Returns true if srun has output for which there is no room: a user may be
 * reading it. */
bool ddp_act_is_writing(const struct ddp_attempt *attempt);

#endif
