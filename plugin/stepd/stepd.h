/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's work in slurmstepd and in each task. root.c runs as root, in
 * slurmstepd itself. All else runs in the task's own process, as the user: read
 * task_init.c first, which has the order. task.c reads the task and its rank,
 * and rendezvous.c finds where ranks meet. node.c and choose.c find its GPU and
 * CPUs over the memory of node/node.h, apply.c sets it all, and divert.c leads
 * the output to the agent. dispatch.c calls what this header declares.
 */
#ifndef DDP_STEPD_STEPD_H
#define DDP_STEPD_STEPD_H

#include <slurm/spank.h>

/* Runs in slurmstepd, as root, before it forks the tasks. */
void ddp_root_post_opt(spank_t spank);

/*
 * Runs in slurmstepd, as root, when a task has ended. For the first task of the
 * node that failed it sleeps for 0.2 s, and waits for the agent for 3 s at
 * most. After the last task it waits until srun has taken the output, or has
 * taken nothing for 60 s.
 */
void ddp_root_task_exit(spank_t spank);

/* Runs once in the task's own process, as the user. */
void ddp_task_init(spank_t spank);

#endif
