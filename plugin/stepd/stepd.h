/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin's work in slurmstepd and in each task. as_root.c runs as root, in
 * slurmstepd itself. All else runs in the task's own process, as the user: read
 * task_init.c first, which has the order. task.c reads the task and its rank,
 * and master.c finds where ranks meet. node.c and choose.c find its GPU and
 * CPUs over the memory of node/node.h, apply.c sets it all, and divert.c leads
 * the output to the agent. dispatch.c calls what this header declares.
 */
#ifndef DDP_STEPD_STEPD_H
#define DDP_STEPD_STEPD_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "node/node.h"
#include "util/error.h"

/* ---- dispatch.c calls these */

/* Runs in slurmstepd, as root, before it forks the tasks. */
void ddp_root_post_opt(spank_t spank);

/*
 * Runs in slurmstepd, as root, when a task has ended. For the first task of the
 * node that failed it sleeps for 0.2 s, and waits for the agent for 3 s at
 * most. After the last task it waits until srun has taken the output, or has
 * taken nothing for 60 s. If the agent was killed, it removes the files that
 * this has left, for 1 s at most.
 */
void ddp_root_task_exit(spank_t spank);

/*
 * Runs in slurmstepd, as root, at its end, which before Slurm 26.05 comes when it
 * has told srun of all ends. If the agent was killed, it removes the files that
 * this has left still, for 10 s at most.
 */
void ddp_root_exit(spank_t spank);

/* Runs once in the task's own process, as the user. */
void ddp_task_init(spank_t spank);

/* ---- as_root.c prepares this for the tasks, as root, and both ask */

/* The one context of the plugin in slurmstepd; tasks have a copy of it. */
struct ddp_stepd {
	struct ddp_siblings *siblings;	/* NULL: see error */
	struct ddp_error error;		/* why tasks share nothing */
	uint32_t tasks;			/* that have not ended */
	int notes[2];			/* sockets, from the agent's on; -1:
					 * none */
	bool paused;			/* for a task that failed */
};

extern struct ddp_stepd ddp_stepd;

/*
 * Returns 1 if this is a step of the user's, 0 if it is Slurm's or an MPI
 * launcher's, -1 if Slurm does not tell.
 */
int ddp_step_is_users(spank_t spank, struct ddp_error *error);

/* Set the error that Slurm does not tell item; returns -1. */
int ddp_step_error(const char *item, spank_err_t why, struct ddp_error *error);

#endif
