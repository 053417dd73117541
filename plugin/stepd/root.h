/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state that slurmstepd has prepared for its tasks as root, and what root
 * and tasks both ask.
 */
#ifndef DDP_STEPD_ROOT_H
#define DDP_STEPD_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "node/node.h"
#include "util/error.h"

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
