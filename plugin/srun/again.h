/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-restarts and --ddp-spares in srun: what they need, which nodes of the
 * job the step gets, and how srun is told. Nodes are given to it as options
 * after the user's own, of which the last one holds.
 */
#ifndef DDP_SRUN_AGAIN_H
#define DDP_SRUN_AGAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "verdict/restart.h"

/* End srun where they cannot work; ends_step: a failure ends the step. */
void ddp_again_check(bool ends_step);

/*
 * Adds the arguments that name the step's nodes, if nodes are kept back and
 * srun does not know it yet. checks: only nodes that --ddp-check finds fit.
 * Returns true if srun must run again.
 */
bool ddp_again_place(bool checks);

/*
 * Arguments for a step on the nodes and on the spares, with as many tasks and
 * GPUs on each; at most DDP_AGAIN_WIDE, the caller's. Returns how many.
 */
enum { DDP_AGAIN_WIDE = 5 };
size_t ddp_again_widen(const struct ddp_restart *restart,
		       char *arguments[DDP_AGAIN_WIDE]);

/*
 * Sets what the supervisor needs; all of it is 0 where there are no restarts.
 */
void ddp_again_read(struct ddp_restart *restart);

/*
 * Adds the arguments for the srun of an attempt, and what its tasks are told.
 */
void ddp_again_tell(const struct ddp_restart *restart);

#endif
