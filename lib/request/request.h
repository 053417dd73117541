/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/request reads what a command line asks for: options, GPUs, launchers and
 * the scripts that start them. It uses lib/util and lib/layout, and no
 * environment, file or global state.
 *
 * What a --ddp step or job asks for, and what it leaves open: one rank for each
 * GPU, or one task a node for a launcher that starts the ranks.
 *
 * The texts are the values of the options of srun, sbatch and salloc of the
 * same name, from the command line or the environment; NULL where an option was
 * not given. Nothing is copied and nothing is kept.
 */
#ifndef DDP_REQUEST_REQUEST_H
#define DDP_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct ddp_request {
	const char *nodes;		/* "2"; "1-4"; "2-0": 2 and no bound */
	const char *ntasks;
	const char *ntasks_per_node;
	const char *ntasks_per_gpu;
	const char *cpus_per_task;
	const char *cpus_per_gpu;
	const char *mincpus;
	const char *gres;
	const char *gpus;
	const char *gpus_per_node;
	const char *gpus_per_task;
	const char *gpus_per_socket;
	bool in_job;			/* the nodes are those of a job that
					 * exists, named by --jobid */
	bool nodes_typed;		/* nodes is the user's own word for
					 * this step, not the job's size */
	bool per_node_typed;		/* so is ntasks_per_node */
	bool ntasks_inherited;		/* ntasks is the job's, or of a step
					 * around this one */
	bool in_step;			/* there is such a step */
	bool outranked;			/* srun has another ntasks, which is
					 * not for this step: ntasks is NULL */
	bool arbitrary;			/* a host file says each task's node */
	bool pty;
	const char *launcher;		/* what the command calls to start the
					 * ranks of a node; NULL: it is one */
	bool cpus_open;			/* whole nodes, or CPUs shared by
					 * several tasks: nobody can tell */
};

/* Values for options that were left open; 0: leave it open. */
struct ddp_fill {
	uint32_t nodes;
	uint32_t ntasks;
	uint32_t ntasks_per_node;
};

/*
 * Count the GPUs on each node, 0 if none are asked for. Slurm joins
 * --gpus-per-node and --gres into one list, in which --gres wins where both
 * name a type of GPU. If neither names GPUs, --gpus counts, which needs a fixed
 * number of nodes that divides it. Returns 0, or -1 with *gpus unchanged.
 */
int ddp_request_gpus(const struct ddp_request *request, uint32_t *gpus,
		     struct ddp_error *error);

/*
 * If the GPUs of each node follow from --gpus, write to text[size] what
 * --gpus-per-node must be for Slurm to give each node that many: otherwise
 * Slurm may give some nodes more than others. Writes "" if they do not follow
 * from it. Returns 0; -1 with an empty text if --gpus does not divide evenly,
 * or if a list of GPUs cannot be read.
 */
int ddp_request_gpus_per_node(const struct ddp_request *request, char *text,
			      size_t size, struct ddp_error *error);

/*
 * The fixed number of nodes; without any word of it one, or those of the job.
 * 0: open.
 */
uint32_t ddp_request_nodes(const struct ddp_request *request);

/*
 * Returns whether what is typed for this step outranks the number of tasks that
 * it inherits. A number of tasks per node does. A number of nodes does if the
 * inherited one is an outer step's, or does not fit these nodes and their GPUs.
 */
bool ddp_request_outranks(const struct ddp_request *request);

/* Returns whether it asks for several tasks on a node. */
bool ddp_request_several(const struct ddp_request *request);

/*
 * Choose the tasks of a step: one for each GPU of each node; one a node for a
 * launcher, and several are refused; one in all for --pty. A number of tasks,
 * or of tasks per node or per GPU, that the user gave stands. The number of all
 * tasks is filled in where srun would take another. Tasks per node
 * are then filled in only to keep a node from getting more tasks than it has
 * GPUs, and only where the numbers fit. Nothing is filled in where a host file
 * places the tasks. Returns 0; -1 where GPUs are asked for and the number of
 * nodes is open, because Slurm would then start too few tasks.
 */
int ddp_request_fill(const struct ddp_request *request, struct ddp_fill *fill,
		     struct ddp_error *error);

/*
 * Check that each rank of a step can have a GPU to itself. Returns 0 also if
 * that cannot be known; -1 if some node certainly gets more ranks than GPUs.
 */
int ddp_request_check_gpus(const struct ddp_request *request,
			   struct ddp_error *error);

/*
 * CPUs for each task of a step, so that what the job was given for its tasks
 * reaches the step's tasks: job_cpus_per_task (SLURM_CPUS_PER_TASK; NULL: no
 * limit), or as many as tasks_per_node tasks find on the job's smallest node.
 * job_cpus_per_node is SLURM_JOB_CPUS_PER_NODE, such as "4(x2),8" (NULL: not
 * known), of job_nodes nodes. Returns 0 if the text cannot be read, or if there
 * is not one CPU for each.
 */
uint32_t ddp_request_cpus_per_task(const char *job_cpus_per_task,
				   const char *job_cpus_per_node,
				   uint32_t job_nodes,
				   uint32_t tasks_per_node);

/*
 * Returns whether a job that is being submitted names as many tasks as GPUs, on
 * several nodes, and leaves it to Slurm how many of them a node gets; *gpus is
 * then how many it should.
 */
bool ddp_request_needs_even(const struct ddp_request *request, uint32_t *gpus);

enum ddp_cpus {
	DDP_CPUS_ENOUGH,		/* or not known, or no GPUs */
	DDP_CPUS_ONE_A_RANK
};

/*
 * Check that a job that is being submitted leaves CPUs for a rank on each of
 * its GPUs. Returns 0, or -1 if there are fewer CPUs than ranks.
 */
int ddp_request_check_cpus(const struct ddp_request *request,
			   enum ddp_cpus *cpus, struct ddp_error *error);

#endif
