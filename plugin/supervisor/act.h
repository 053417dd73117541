/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ACT_H
#define DDP_SUPERVISOR_ACT_H

#include "supervisor/attempt.h"

/* Does what follows from the facts now. */
void ddp_act_tick(struct ddp_attempt *attempt, int64_t now_ns);

/* Whether nothing is left to wait for, as srun has ended. */
bool ddp_act_is_over(struct ddp_attempt *attempt, int64_t now_ns);

/* Then: says what is known only now, and waits until it is written. */
void ddp_act_end(struct ddp_attempt *attempt);

/* Whether srun has output left for which there is no room: a user may be reading
 * it. */
bool ddp_act_is_writing(const struct ddp_attempt *attempt);

#endif
