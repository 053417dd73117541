/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_PREFLIGHT_H
#define DDP_SRUN_PREFLIGHT_H

#include "util/text.h"
#include "verdict/restart.h"

/*
 * --ddp-check: run the step with ddp-bench --preflight as its command first,
 * and print what that finds. Returns if it finds nothing; otherwise srun exits
 * with 1. Call it before anything is filled in.
 *
 * restart (NULL: no nodes are kept back): the spares are checked, too. Those
 * that are not fit are left out of it, and added to the list unfit, with commas
 * between; all others are checked again. srun exits where they are too few.
 */
void ddp_preflight(struct ddp_restart *restart, struct ddp_text *unfit);

#endif
