/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ABORT_H
#define DDP_SUPERVISOR_ABORT_H

#include "supervisor/attempt.h"

/*
 * srun has ended: whether by all that is known here a rank has called MPI_Abort
 * of which no agent could tell. What is left is to ask slurmctld whether the job
 * was cancelled: see ddp_cancel_ask().
 */
bool ddp_abort_is_likely(const struct ddp_attempt *attempt);

/*
 * If so, and its job runs: no user has ended the step, and that rank's end is
 * now in it. Returns whether that is so.
 */
bool ddp_abort_take(struct ddp_attempt *attempt);

#endif
