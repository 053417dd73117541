/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_EXPLAIN_H
#define DDP_SRUN_EXPLAIN_H

#include <stdbool.h>

#include <slurm/spank.h>

/*
 * Print what was chosen for the step, and why, before anything of it runs.
 * master: the node of rank 0; NULL: not known.
 */
void ddp_explain(spank_t spank, bool heterogeneous, const char *master);

#endif
