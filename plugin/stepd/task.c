/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One task: what Slurm says of it, its environment, and its rank, local rank and
 * node rank, from the step's node list and the way in which Slurm distributes
 * tasks to nodes.
 */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/hostlist.h"
#include "layout/tasks.h"
#include "options/plugin.h"
#include "stepd/stepd.h"
#include "util/scan.h"

/* ---- its environment */

const char *ddp_task_getenv(const struct ddp_task *task, const char *name)
{
	size_t length = strlen(name);
	char **entry;

	/* spank_getenv has no room for the node lists of large jobs. */
	for (entry = task->environment; entry && *entry; entry++)
		if (strncmp(*entry, name, length) == 0 &&
		    (*entry)[length] == '=')
			return *entry + length + 1;
	return NULL;
}

/* The same for one that Slurm must have set. */
static const char *need(const struct ddp_task *task, const char *name,
			struct ddp_error *error)
{
	const char *value = ddp_task_getenv(task, name);

	if (!value)
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "Slurm has not set %s", name);
	return value;
}

int ddp_task_getenv_number(const struct ddp_task *task, const char *name,
			   uint32_t *number, struct ddp_error *error)
{
	const char *text = need(task, name, error), *at = text;
	uint64_t value;

	if (!text)
		return -1;
	if (ddp_scan_number(&at, 0, UINT32_MAX, &value) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s=%.64s is not a number", name, text);
	*number = (uint32_t)value;
	return 0;
}

const char *ddp_task_users(const struct ddp_task *task, const char *name)
{
	const char *value = ddp_task_getenv(task, name);

	return value && *value ? value : NULL;
}

uint32_t ddp_task_gpus(const struct ddp_task *task)
{
	const char *on_node = ddp_task_getenv(task, "SLURM_GPUS_ON_NODE");

	return on_node ? (uint32_t)atol(on_node) : 0;
}

int ddp_task_environment(struct ddp_task *task, struct ddp_error *error)
{
	spank_err_t why;

	task->environment = NULL;
	why = spank_get_item(task->spank, S_JOB_ENV, &task->environment);
	return why == ESPANK_SUCCESS ? 0 :
		ddp_step_error("the environment", why, error);
}

int ddp_task_setenv(struct ddp_task *task, const char *name, const char *value,
		    struct ddp_error *error)
{
	spank_err_t why;

	if (!value && !ddp_task_getenv(task, name))
		return 0;
	why = value ? spank_setenv(task->spank, name, value, 1) :
		spank_unsetenv(task->spank, name);
	if (why != ESPANK_SUCCESS)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "Slurm does not set %s (%s)", name,
				     spank_strerror(why));
	return ddp_task_environment(task, error);
}

int ddp_task_mask(struct ddp_cpuset *mask, struct ddp_error *error)
{
	ddp_cpuset_clear(mask);
	if (sched_getaffinity(0, sizeof(*mask), (cpu_set_t *)mask) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the kernel does not "
			     "tell this task's CPUs: %s", strerror(errno));
}

void ddp_task_say(char *text)
{
	if (text && write(STDERR_FILENO, text, strlen(text)) < 0)
		text[0] = '\0';	/* nobody reads: not a reason to end */
	free(text);
}

/* ---- its rank */

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
	const char *nodes = need(task, "SLURM_STEP_NODELIST", error);
	const char *tasks_text = need(task, "SLURM_STEP_TASKS_PER_NODE",
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

/*
 * Computes the layout of the step and the task's rank in it, and checks that
 * Slurm says the same. Fills in layout and vars.rank.
 */
static int find_rank(struct ddp_task *task, struct ddp_error *error)
{
	const char *node = need(task, "SLURMD_NODENAME", error);
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

/* ---- what Slurm says */

/* Reads what srun tells the task in variables. */
static void read_told(struct ddp_task *task)
{
	const char *told = ddp_task_getenv(task, DDP_TELL_RESTARTS);
	const char *command = ddp_task_getenv(task, DDP_TELL_COMMAND);
	const char *pet = ddp_task_getenv(task, DDP_TELL_PET);

	task->piped = ddp_task_getenv(task, DDP_TELL_PIPE) != NULL;
	if (pet)
		task->vars.pet = strcmp(pet, "none") == 0 ? DDP_PET_NONE :
				 DDP_PET_NO_RANK;
	task->has_prolog = command && strcmp(command, "prolog") == 0;
	task->has_command = task->has_prolog ||
		(command && strcmp(command, "1") == 0);
	if (told)
		sscanf(told, "%u:%u", &task->vars.restarts,
		       &task->vars.restarts_max);
}

/*
 * Some items of spank.h are those of the component in a heterogeneous step.
 * They are used as such; what is of the whole step is read from the
 * environment.
 */
int ddp_task_read(struct ddp_task *task, struct ddp_error *error)
{
	uint32_t count;
	spank_err_t why;

	why = spank_get_item(task->spank, S_JOB_TOTAL_TASK_COUNT, &count);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the number of tasks", why, error);
	why = spank_get_item(task->spank, S_JOB_LOCAL_TASK_COUNT,
			     &task->local_count);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the number of local tasks", why, error);
	why = spank_get_item(task->spank, S_JOB_STEPID, &task->step_id);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the step id", why, error);
	if (ddp_task_getenv_number(task, "SLURM_JOB_ID", &task->job_id,
				   error) < 0 ||
	    ddp_task_getenv_number(task, "SLURM_STEP_NUM_TASKS",
				   &task->world_size, error) < 0 ||
	    ddp_task_getenv_number(task, "SLURM_PROCID", &task->rank,
				   error) < 0 ||
	    ddp_task_getenv_number(task, "SLURM_LOCALID", &task->local_rank,
				   error) < 0)
		return -1;
	read_told(task);
	task->supervised = !ddp_plugin.unsupervised &&
		ddp_task_getenv(task, DDP_TELL_SUPERVISOR);
	task->heterogeneous = count != task->world_size;
	task->launcher = ddp_task_getenv(task, DDP_TELL_LAUNCHER) != NULL;
	if (task->launcher &&
	    ddp_task_getenv_number(task, DDP_TELL_LAUNCHER,
				   &task->launcher_ranks, error) < 0)
		return -1;
	return find_rank(task, error);
}
