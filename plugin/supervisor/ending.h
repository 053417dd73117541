/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ENDING_H
#define DDP_SUPERVISOR_ENDING_H

#include "supervisor/attempt.h"

/*
 * What is due to end a step that has failed: its ranks, then what Slurm still
 * has of it, and an srun that does not notice.
 */
void ddp_ending_tick(struct ddp_attempt *attempt, int64_t now_ns);

/* srun has output left for which there is no room: a user may be reading it. */
bool ddp_ending_is_writing(const struct ddp_attempt *attempt);

#endif
