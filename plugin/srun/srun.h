/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the plugin does in srun, sbatch and salloc, as the user. Read srun.c
 * first: it has the order. check.c and policy.c refuse, launch.c looks for
 * torchrun and the like in the command, fill.c fills in what
 * the user left open, rerun.c runs srun again with it, and explain.c says what
 * was chosen.
 * This header is what dispatch.c calls.
 */
#ifndef DDP_SRUN_SRUN_H
#define DDP_SRUN_SRUN_H

#include <slurm/spank.h>

/* Before srun, or sbatch or salloc, reads its variables and command line. */
void ddp_srun_init(void);
void ddp_allocator_init(void);

/* When it has read them; in srun once for each component of the step. */
void ddp_srun_post_opt(void);
void ddp_allocator_post_opt(void);

/* When the step exists and nothing runs yet; once. */
void ddp_srun_launch(spank_t spank);

void ddp_srun_exit(void);

#endif
