/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A task's rank, local rank and node rank, from the step's node list and the
 * way in which Slurm distributes tasks to nodes.
 */
#define _GNU_SOURCE
#include "stepd/rank.h"

#include <stdlib.h>
#include <string.h>

#include "layout/hostlist.h"
#include "layout/mapping.h"
#include "layout/tasks.h"
#include "options/plugin.h"

/*
 * Returns the mapping that tells where each rank is, by the MPI plugin or by
 * srun; NULL if neither tells. A mapping that an outer step left in the
 * environment does not count. srun sets the MPI type for each step, and hides
 * its own word from programs.
 */
static const char *get_mapping(const struct ddp_task *task)
{
	const char *mpi = ddp_task_getenv(task, "SLURM_MPI_TYPE");
	const char *text = ddp_task_getenv(task, "SLURM_PMIX_MAPPING_SERV");

	return mpi && strncmp(mpi, "pmix", 4) == 0 && text ? text :
		ddp_task_users(task, DDP_TELL_MAPPING);
}

/*
 * Find out how ranks are distributed to nodes. Where nobody tells, Slurm's
 * distribution does, except for heterogeneous steps and arbitrary order.
 */
static int fill_params(const struct ddp_task *task,
		       struct ddp_layout_params *params, uint32_t **mapping,
		       struct ddp_error *error)
{
	size_t hosts = ddp_hostlist_count(params->hosts);
	const char *text = get_mapping(task);

	if (hosts == 1)
		return 0;
	if (text) {
		*mapping = ddp_mapping_parse(text, hosts, task->world_size,
					     error);
		params->rank_hosts = *mapping;
		return *mapping ? 0 : -1;
	}
	if (ddp_distribution_parse(ddp_task_getenv(task, "SLURM_DISTRIBUTION"),
				   &params->distribution, error) < 0)
		return -1;
	if (task->heterogeneous)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "which node runs rank 0 of a "
				     "heterogeneous step is known with "
				     "--mpi=pmix only; use that");
	if (params->distribution == DDP_DISTRIBUTION_ARBITRARY)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "which node runs rank 0 of an arbitrarily "
				     "distributed step is known with "
				     "--mpi=pmix, or by sattach beside srun; "
				     "use one of them");
	return params->distribution != DDP_DISTRIBUTION_PLANE ? 0 :
		ddp_task_getenv_number(task, "SLURM_DIST_PLANESIZE",
				       &params->plane_size, error);
}

static struct ddp_layout *make_layout(const struct ddp_task *task,
				      struct ddp_error *error)
{
	const char *nodes = ddp_task_needenv(task, "SLURM_STEP_NODELIST",
					     error);
	const char *tasks_text = ddp_task_needenv(task,
					      "SLURM_STEP_TASKS_PER_NODE",
					      error);
	struct ddp_hostlist *hosts = NULL;
	struct ddp_layout_params params = { .distribution =
		DDP_DISTRIBUTION_BLOCK };
	struct ddp_layout *layout = NULL;
	uint32_t *tasks = NULL, *mapping = NULL;

	if (nodes && tasks_text)
		hosts = ddp_hostlist_create(nodes, error);
	if (!hosts)
		return NULL;
	tasks = calloc(ddp_hostlist_count(hosts), sizeof(*tasks));
	params.hosts = hosts;
	params.tasks = tasks;
	if (!tasks)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else if (ddp_tasks_parse(tasks_text, ddp_hostlist_count(hosts), tasks,
				 error) == 0 &&
		 fill_params(task, &params, &mapping, error) == 0)
		layout = ddp_layout_create(&params, error);
	free(mapping);
	free(tasks);
	ddp_hostlist_destroy(hosts);
	return layout;
}

int ddp_task_find_rank(struct ddp_task *task, struct ddp_error *error)
{
	const char *node = ddp_task_needenv(task, "SLURMD_NODENAME", error);
	struct ddp_rank *rank = &task->vars.rank;

	task->layout = node ? make_layout(task, error) : NULL;
	if (!task->layout ||
	    ddp_layout_get(task->layout, task->rank, rank, error) < 0)
		return -1;
	task->vars.world_size = ddp_layout_world_size(task->layout);
	task->vars.node_count = ddp_layout_node_count(task->layout);
	task->vars.ranks_per_node = ddp_layout_ranks_per_node(task->layout);
	if (task->vars.world_size == task->world_size &&
	    rank->local_rank == task->local_rank &&
	    rank->local_world_size == task->local_count &&
	    strcmp(rank->host, node) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "Slurm runs it as local task %u of %u on %s, and "
			     "by the step's layout it is %u of %u on %s; use "
			     "--mpi=pmix, or install sattach beside srun",
			     task->local_rank, task->local_count, node,
			     rank->local_rank, rank->local_world_size,
			     rank->host);
}
