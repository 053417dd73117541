/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_CANCEL_H
#define DDP_SUPERVISOR_CANCEL_H

#include "supervisor/attempt.h"

/*
 * srun's own lines carry no step's number, and a rank that has started another
 * step prints the same. So while nothing has failed, forget them once all agents
 * have answered a later PING. Slurm's that the step is cancelled has its number,
 * and ranks may go on for some time then.
 */
void ddp_cancel_forget(struct ddp_attempt *attempt, int64_t now_ns);

/* The first failure is heard of: note what Slurm has said before. */
void ddp_cancel_note(struct ddp_attempt *attempt, int64_t now_ns);

/*
 * Whether it is known by now if what Slurm has said explains the failure. Where
 * slurmctld has to be asked, this asks it, and waits for nothing.
 */
bool ddp_cancel_is_clear(struct ddp_attempt *attempt, int64_t now_ns);

/*
 * Ask slurmctld, once, whether the job simply runs. Returns whether it has
 * answered, or will not: see runs.
 */
bool ddp_cancel_ask(struct ddp_attempt *attempt, int64_t now_ns);

/* Whether it explains this verdict. */
bool ddp_cancel_explains(const struct ddp_attempt *attempt,
			 const struct ddp_verdict *verdict);

/* At the end: whether it explains a verdict that was found before it was said. */
bool ddp_cancel_was_late(const struct ddp_attempt *attempt);

/* Whether Slurm has said so lately that the step, or another, is cancelled. */
bool ddp_cancel_was_said(const struct ddp_attempt *attempt, int64_t now_ns);

#endif
