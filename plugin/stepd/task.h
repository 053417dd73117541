/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task, as slurmstepd starts it: what is read of it, what is chosen for it,
 * and what it gets. Each part of task_init fills in some of it. All functions
 * return 0, or -1 with the sentence that ends the task.
 */
#ifndef DDP_STEPD_TASK_H
#define DDP_STEPD_TASK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "layout/layout.h"
#include "layout/vars.h"
#include "place/placement.h"
#include "util/error.h"
#include "util/failure.h"

struct ddp_task {
	spank_t spank;
	char **environment;		/* Slurm's array; changes as it grows */
	uint32_t job_id, step_id;
	uint32_t world_size, rank, local_rank, local_count;
	bool heterogeneous;		/* a component of a larger step */
	bool alike;			/* as for all tasks of the node */
	bool supervised;		/* the step has a supervisor */
	bool piped;			/* so is srun's standard output */
	bool launcher;			/* its command starts the ranks */
	bool has_command;		/* a dry run's, and Slurm's argv is it */
	bool has_prolog;		/* which may change what the command is */
	uint32_t launcher_ranks;	/* how many; 0: it does not say */
	struct ddp_layout *layout;
	struct ddp_vars vars;
	char *master, *tf_config;	/* those of vars, to be freed */
	const char *port_why;		/* where the port is from */
	char warning[DDP_FAILURE_SIZE];	/* why ranks may not meet; "": none */
	char interface[IF_NAMESIZE], nccl_interface[IF_NAMESIZE + 1];
	char positions[DDP_POSITIONS_SIZE];
	struct ddp_placement placement;	/* cpus empty: left as Slurm has it */
};

/* Get the environment, which moves when it changes. */
int ddp_task_environment(struct ddp_task *task, struct ddp_error *error);

/* Read what Slurm says of the task: ids, counts, whether heterogeneous. */
int ddp_task_read(struct ddp_task *task, struct ddp_error *error);

/* A variable's value, until the environment changes; NULL where not set. */
const char *ddp_task_getenv(const struct ddp_task *task, const char *name);

/* The same for one that Slurm must have set. */
const char *ddp_task_needenv(const struct ddp_task *task, const char *name,
			     struct ddp_error *error);
int ddp_task_getenv_number(const struct ddp_task *task, const char *name,
			   uint32_t *number, struct ddp_error *error);

/* The user's own value; NULL where it is not set, or empty. */
const char *ddp_task_users(const struct ddp_task *task, const char *name);

/* How many GPUs the step has on this node; 0: Slurm does not tell. */
uint32_t ddp_task_gpus(const struct ddp_task *task);

/* value NULL: take it out. */
int ddp_task_setenv(struct ddp_task *task, const char *name, const char *value,
		    struct ddp_error *error);

/* The CPUs on which the kernel lets this process run. */
int ddp_task_mask(struct ddp_cpuset *mask, struct ddp_error *error);

#endif
