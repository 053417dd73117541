/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the plugin does in slurmstepd and in each task. root.c is what runs as
 * root, in slurmstepd itself. All else runs in the task's own process, as the
 * user: read task_init.c first, which has the order. task.c reads the task,
 * rank.c finds its rank, rendezvous.c where ranks meet, node.c and choose.c its
 * GPU and CPUs over the memory of shared.h, and apply.c sets it all. This
 * header is what dispatch.c calls.
 */
#ifndef DDP_STEPD_STEPD_H
#define DDP_STEPD_STEPD_H

#include <slurm/spank.h>

/* In slurmstepd, as root, before it forks the tasks. */
void ddp_root_post_opt(spank_t spank);

/*
 * In slurmstepd, as root, when a task has ended. For the first task of the node
 * that failed it sleeps for 0.2 s, and waits for the agent for 3 s at most.
 */
void ddp_root_task_exit(spank_t spank);

/* In the task's own process, as the user; once. */
void ddp_task_init(spank_t spank);

#endif
