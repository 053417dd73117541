/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task, as slurmstepd starts it: what is read of it, what is chosen for it,
 * and what it gets. Each part of task_init fills in some of it. Functions
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
#include "node/node.h"

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

/* A variable's value, until the environment changes; NULL where not set. */
const char *ddp_task_getenv(const struct ddp_task *task, const char *name);

/* The same for a number that Slurm must have set. */
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

/* Print a text (NULL: nothing) at once, so that no other node's is within. */
void ddp_task_say(char *text);	/* frees it */

/*
 * Read what Slurm says of the task, compute the layout of the step and the rank
 * in it, and check that Slurm says the same.
 */
int ddp_task_read(struct ddp_task *task, struct ddp_error *error);

/*
 * master.c: choose the master's address and port and the interface towards
 * it, and check that they can be used. Fills in vars and port_why.
 */
int ddp_task_find_master(struct ddp_task *task, struct ddp_error *error);

/*
 * node.c: choose the GPUs and CPUs of each task together with the node's other
 * tasks. Fills in placement and positions, and in vars what tells the program
 * of them and of the agent's files. Returns 0; -1 with what this task has found;
 * 1 if another task has found what ends them all, and says it.
 */
int ddp_node_join(struct ddp_task *task, struct ddp_error *error);

/*
 * Called in a task that ends. The others then do not wait for it, and the agent
 * tells the supervisor why. Returns true if this task is the first that ends
 * so, and must print why. Where the tasks share nothing it returns alone.
 */
bool ddp_node_fail(const char *why, bool alone);

/*
 * This task ends as another one of the node has failed, which has said why: for
 * the agent, which may see this one end first, it is the reason for both.
 */
void ddp_node_leave(void);

/*
 * choose.c: answer what all slots say; print the warnings and the rows that are
 * due. task is the one that does it, whose layout knows the ranks.
 */
int ddp_choose(const struct ddp_task *task, const struct ddp_machine *machine,
	       struct ddp_slot *slots, uint32_t count,
	       struct ddp_error *error);

/* apply.c: bind to the CPUs, prefer the memory, set the variables. */
int ddp_task_apply(struct ddp_task *task, struct ddp_error *error);

/*
 * divert.c: let the task's output go through the tee, where somebody needs that:
 * its standard error in a supervised step, and both with --ddp-logs or
 * --ddp-show.
 */
int ddp_divert_output(const struct ddp_task *task, struct ddp_error *error);

/* Check for a dry run that files of --ddp-logs could be made; makes none. */
int ddp_logs_check(struct ddp_error *error);

#endif
