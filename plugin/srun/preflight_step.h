/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The step of --ddp-check: the same srun, with the same options, but with
 * ddp-bench as its command.
 */
#ifndef DDP_SRUN_PREFLIGHT_STEP_H
#define DDP_SRUN_PREFLIGHT_STEP_H

#include <limits.h>
#include <stdbool.h>

#include "verdict/restart.h"

/*
 * Finds ddp-bench where the user's shell does, and so where the nodes should.
 * Returns false if it is not on PATH.
 */
bool ddp_preflight_find(char path[PATH_MAX]);

/*
 * Run the step, on the spares of restart (NULL: there are none), too. Returns
 * all that it prints, the caller's to free; NULL: out of memory. *status is how
 * it ended, *number the last signal that came meanwhile, or 0.
 */
char *ddp_preflight_run(char *program, const struct ddp_restart *restart,
			int *status, int *number);

#endif
