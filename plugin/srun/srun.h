/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's work in srun, sbatch and salloc, as the user. Read srun.c first:
 * it has the order. check.c and policy.c refuse, launch.c looks for torchrun
 * and the like in the command, and fill.c fills in what the user left open.
 * rerun.c runs srun again with it, and explain.c says what was chosen.
 * dispatch.c calls what this header declares.
 */
#ifndef DDP_SRUN_SRUN_H
#define DDP_SRUN_SRUN_H

#include <slurm/spank.h>

/* Called before srun, sbatch or salloc reads its variables and command line. */
void ddp_srun_init(void);
void ddp_allocator_init(void);

/* Called when it has read them; in srun once for each component of the step. */
void ddp_srun_post_opt(void);
void ddp_allocator_post_opt(void);

/* Called once, when the step exists and nothing runs yet. */
void ddp_srun_launch(spank_t spank);

void ddp_srun_exit(void);

#endif
