/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_HIDDEN_H
#define DDP_SUPERVISOR_HIDDEN_H

#include "supervisor/attempt.h"

/* Note in the step whom srun has named first, while only srun ends the step. */
void ddp_hidden_confirm(struct ddp_attempt *attempt);

/*
 * False while srun may still tell of ranks: those of an agent that does not
 * answer, or one that it has to name first.
 */
bool ddp_hidden_is_clear(const struct ddp_attempt *attempt);

/*
 * Whether another rank than that of the verdict may have failed first, of which
 * its agent does not tell: it is stopped, perhaps. Adds to text why, if so.
 */
bool ddp_hidden_find(const struct ddp_attempt *attempt,
		     const struct ddp_verdict *verdict, struct ddp_text *text);

/*
 * Where nobody was named when the step is over: add the rank that srun said first
 * to have failed before it ended the step. Returns whether there is one, of whose
 * start an agent has told, and not of its end: a rank that the plugin refuses has
 * no agent.
 */
bool ddp_hidden_add_named(const struct ddp_attempt *attempt,
			  struct ddp_text *text);

#endif
