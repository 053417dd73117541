/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_PREFLIGHT_H
#define DDP_SRUN_PREFLIGHT_H

/*
 * --ddp-check: run the step with ddp-bench --preflight as its command first,
 * and print what that finds. Returns if it finds nothing; otherwise srun exits
 * with 1. Call it before anything is filled in.
 */
void ddp_preflight(void);

#endif
