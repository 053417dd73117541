/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd, in the task's own process, as the user, when all that Slurm
 * sets for the task is set: work out the task's place in the job and put it
 * into the task's environment. Whatever cannot be worked out ends the task
 * with one line, which is what srun then shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layout/hostlist.h"
#include "layout/layout.h"
#include "layout/mapping.h"
#include "layout/port.h"
#include "layout/tasks.h"
#include "layout/vars.h"
#include "net.h"
#include "plugin.h"

#define SPECIAL_STEPS 0xfffffffau	/* batch, interactive, extern, ... */

struct task {
	spank_t spank;
	char **environment;		/* Slurm's array; changes as it grows */
	uint32_t job_id, step_id;
	uint32_t world_size, rank, local_rank, local_count;
	bool heterogeneous;		/* a component of a larger step */
	bool alike;			/* as for all tasks of the node */
	struct ddp_layout *layout;
	struct ddp_vars vars;
	char interface[IF_NAMESIZE], nccl_interface[IF_NAMESIZE + 1];
	char record[DDP_VARS_RECORD_SIZE];
};

static const char *task_getenv(const struct task *task, const char *name)
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

static const char *task_needenv(const struct task *task, const char *name,
				struct ddp_error *error)
{
	const char *value = task_getenv(task, name);

	if (!value)
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "Slurm has not set %s", name);
	return value;
}

static int task_getenv_number(const struct task *task, const char *name,
			      uint32_t *number, struct ddp_error *error)
{
	const char *text = task_needenv(task, name, error);
	unsigned long value;
	char *end;

	if (!text)
		return -1;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value > UINT32_MAX)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s=%s is not a number", name, text);
	*number = (uint32_t)value;
	return 0;
}

static int spank_failed(const char *item, spank_err_t why,
			struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "Slurm does not tell %s (%s)", item,
			     spank_strerror(why));
}

/* Whether this is a task of the user's, not of Slurm or an MPI launcher. */
static int task_is_users(const struct task *task, struct ddp_error *error)
{
	uint32_t step_id;
	char **argv = NULL;
	int argc = 0;
	spank_err_t why;

	why = spank_get_item(task->spank, S_JOB_STEPID, &step_id);
	if (why != ESPANK_SUCCESS)
		return spank_failed("the step id", why, error);
	if (step_id >= SPECIAL_STEPS)
		return 0;
	why = spank_get_item(task->spank, S_JOB_ARGV, &argc, &argv);
	if (why != ESPANK_SUCCESS)
		return spank_failed("the command", why, error);
	return argc < 1 || !ddp_is_launcher_helper(argv[0]);
}

/*
 * The items of spank.h that are per component in a heterogeneous step are
 * used as such only; for the whole step the environment is right.
 */
static int task_read(struct task *task, struct ddp_error *error)
{
	uint32_t count;
	spank_err_t why;

	why = spank_get_item(task->spank, S_JOB_TOTAL_TASK_COUNT, &count);
	if (why != ESPANK_SUCCESS)
		return spank_failed("the number of tasks", why, error);
	why = spank_get_item(task->spank, S_JOB_LOCAL_TASK_COUNT,
			     &task->local_count);
	if (why != ESPANK_SUCCESS)
		return spank_failed("the number of local tasks", why, error);
	why = spank_get_item(task->spank, S_JOB_STEPID, &task->step_id);
	if (why != ESPANK_SUCCESS)
		return spank_failed("the step id", why, error);
	if (task_getenv_number(task, "SLURM_JOB_ID", &task->job_id,
			       error) < 0 ||
	    task_getenv_number(task, "SLURM_STEP_NUM_TASKS",
			       &task->world_size, error) < 0 ||
	    task_getenv_number(task, "SLURM_PROCID", &task->rank, error) < 0 ||
	    task_getenv_number(task, "SLURM_LOCALID", &task->local_rank,
			       error) < 0)
		return -1;
	task->heterogeneous = count != task->world_size;
	return 0;
}

/*
 * How ranks are dealt to nodes: as the MPI plugin says, which alone knows for
 * heterogeneous steps and arbitrary order; else by the distribution. A
 * mapping that an outer step left in the environment is told by the MPI type,
 * which srun sets for each step.
 */
static int params_fill(const struct task *task,
		       struct ddp_layout_params *params, uint32_t **mapping,
		       struct ddp_error *error)
{
	const char *mpi = task_getenv(task, "SLURM_MPI_TYPE");
	const char *text = task_getenv(task, "SLURM_PMIX_MAPPING_SERV");
	size_t hosts = ddp_hostlist_count(params->hosts);

	if (hosts == 1)
		return 0;
	if (mpi && strncmp(mpi, "pmix", 4) == 0 && text) {
		*mapping = ddp_mapping_parse(text, hosts, task->world_size,
					     error);
		params->rank_hosts = *mapping;
		return *mapping ? 0 : -1;
	}
	if (ddp_distribution_parse(task_getenv(task, "SLURM_DISTRIBUTION"),
				   &params->distribution, error) < 0)
		return -1;
	if (params->distribution == DDP_DISTRIBUTION_ARBITRARY ||
	    task->heterogeneous)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "which node runs rank 0 of %s step is "
				     "known with --mpi=pmix only: use that",
				     task->heterogeneous ? "a heterogeneous" :
				     "an arbitrarily distributed");
	return params->distribution != DDP_DISTRIBUTION_PLANE ? 0 :
		task_getenv_number(task, "SLURM_DIST_PLANESIZE",
				   &params->plane_size, error);
}

static struct ddp_layout *layout_make(const struct task *task,
				      struct ddp_error *error)
{
	const char *nodes = task_needenv(task, "SLURM_STEP_NODELIST", error);
	const char *tasks_text = task_needenv(task,
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
		 params_fill(task, &params, &mapping, error) == 0)
		layout = ddp_layout_create(&params, error);
	free(mapping);
	free(tasks);
	ddp_hostlist_destroy(hosts);
	return layout;
}

/* Compute the place, and hold it against what Slurm says of this task. */
static int task_place(struct task *task, struct ddp_error *error)
{
	const char *node = task_needenv(task, "SLURMD_NODENAME", error);
	struct ddp_rank *rank = &task->vars.rank;

	task->layout = node ? layout_make(task, error) : NULL;
	if (!task->layout ||
	    ddp_layout_get(task->layout, task->rank, rank, error) < 0)
		return -1;
	task->vars.world_size = ddp_layout_world_size(task->layout);
	task->vars.node_count = ddp_layout_node_count(task->layout);
	if (task->vars.world_size == task->world_size &&
	    rank->local_rank == task->local_rank &&
	    rank->local_world_size == task->local_count &&
	    strcmp(rank->host, node) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "Slurm runs it as local task %u of %u on %s, and "
			     "by the step's layout it is %u of %u on %s: use "
			     "--mpi=pmix or a plain distribution",
			     task->local_rank, task->local_count, node,
			     rank->local_rank, rank->local_world_size,
			     rank->host);
}

/* The user's own value, not one that an outer --ddp step has left behind. */
static const char *task_users(const struct task *task, const char *name)
{
	const char *value = task_getenv(task, name);

	return value && *value &&
	       !ddp_vars_recorded(task_getenv(task, DDP_VARS_RECORD), name,
				  value) ? value : NULL;
}

static int port_choose(struct task *task, struct ddp_error *error)
{
	const char *reserved = task_getenv(task, "SLURM_STEP_RESV_PORTS");
	const char *users = task_users(task, "MASTER_PORT");
	uint16_t *port = &task->vars.master_port;
	uint32_t number;

	if (ddp_plugin.port) {
		*port = ddp_plugin.port;
		return 0;
	}
	if (users) {
		if (task_getenv_number(task, "MASTER_PORT", &number, error) < 0)
			return -1;
		*port = (uint16_t)number;
		return number && number <= UINT16_MAX ? 0 :
			ddp_error_set(error, DDP_ERROR_ARGUMENT,
				      "MASTER_PORT=%s is not a port", users);
	}
	/* The components of a heterogeneous step all get the merged list. */
	if (reserved)
		return ddp_port_reserved(reserved, port, error);
	*port = ddp_port_derive(task->job_id, task->step_id,
				ddp_plugin.port_first, ddp_plugin.port_last);
	return 0;
}

/* The master's address and port, and the interface towards it. */
static int task_meet(struct task *task, struct ddp_error *error)
{
	const char *users = task_users(task, "MASTER_ADDR");
	const char *master = ddp_layout_master(task->layout);
	struct ddp_address address;
	struct ddp_error why;
	bool resolved;

	task->vars.master_addr = users ? users : master;
	if (port_choose(task, error) < 0)
		return -1;
	resolved = ddp_net_resolve(task->vars.master_addr, &address, &why) == 0;
	if (!resolved && task->vars.node_count > 1)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "the master's name %s %s on %s: mend name "
				     "resolution there, or export another "
				     "MASTER_ADDR",
				     task->vars.master_addr, why.text,
				     task->vars.rank.host);
	if (*ddp_plugin.interface) {
		/* "=" is NCCL's exact form; else eth1 matches eth10 too. */
		snprintf(task->nccl_interface, sizeof(task->nccl_interface),
			 "=%s", ddp_plugin.interface);
		task->vars.nccl_interface = task->nccl_interface;
		task->vars.interface = ddp_plugin.interface;
	} else if (resolved && ddp_net_interface(&address, task->interface)) {
		task->vars.interface = task->interface;
	}
	if (task->rank == 0 &&
	    (!users || (resolved && ddp_net_is_local(&address))) &&
	    ddp_net_port_free(task->vars.master_port, &why) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s on %s, where rank 0 is to listen: "
				     "choose another with --ddp-port or "
				     "MASTER_PORT",
				     why.text, task->vars.rank.host);
	return 0;
}

/* CPUs on which this task may run. */
static uint32_t cpus_count(void)
{
	const size_t bits = 1 << 16;
	cpu_set_t *set = CPU_ALLOC(bits);
	int count = 0;

	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(bits), set) == 0)
		count = CPU_COUNT_S(CPU_ALLOC_SIZE(bits), set);
	CPU_FREE(set);
	return (uint32_t)count;
}

/* Get the environment, which moves when it changes. */
static int task_environment(struct task *task, struct ddp_error *error)
{
	spank_err_t why;

	task->environment = NULL;
	why = spank_get_item(task->spank, S_JOB_ENV, &task->environment);
	return why == ESPANK_SUCCESS ? 0 :
		spank_failed("the environment", why, error);
}

static int task_setenv(struct task *task, const char *name, const char *value,
		       struct ddp_error *error)
{
	spank_err_t why = value ?
		spank_setenv(task->spank, name, value, 1) :
		spank_unsetenv(task->spank, name);

	if (why != ESPANK_SUCCESS)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "Slurm does not set %s (%s)", name,
				     spank_strerror(why));
	return task_environment(task, error);
}

/* srun's input variables that the plugin filled in are not the task's. */
static int added_remove(struct task *task, struct ddp_error *error)
{
	const char *names = task_getenv(task, DDP_RERUN_ADDED);
	char *copy, *name, *save;
	int rc;

	if (!names)
		return 0;
	copy = strdup(names);
	if (!copy)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	rc = task_setenv(task, DDP_RERUN_ADDED, NULL, error);
	for (name = strtok_r(copy, " ", &save); name && rc == 0;
	     name = strtok_r(NULL, " ", &save))
		if (task_getenv(task, name))
			rc = task_setenv(task, name, NULL, error);
	free(copy);
	return rc;
}

static int var_export(struct task *task, size_t row, struct ddp_error *error)
{
	const char *name = ddp_vars_name(row);
	char value[DDP_VARS_VALUE_SIZE];
	bool forced = ddp_plugin.port && strcmp(name, "MASTER_PORT") == 0;
	int has;

	if (ddp_vars_user_wins(row) && task_users(task, name) && !forced)
		return 0;
	has = ddp_vars_format(row, &task->vars, value, sizeof(value));
	if (has == 0)		/* an outer step's is not for this one */
		return task_getenv(task, name) ?
			task_setenv(task, name, NULL, error) : 0;
	if (has < 0 || (ddp_vars_user_wins(row) &&
	    ddp_vars_record_add(task->record, sizeof(task->record), name,
				value) < 0))
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s is too long", name);
	return task_setenv(task, name, value, error);
}

static int task_export(struct task *task, struct ddp_error *error)
{
	size_t row;

	task->vars.cpus = cpus_count();
	ddp_vars_record_begin(task->record, sizeof(task->record),
			      task->job_id, task->step_id);
	for (row = 0; row < ddp_vars_count(); row++)
		if (var_export(task, row, error) < 0)
			return -1;
	if (task_setenv(task, DDP_VARS_RECORD, task->record, error) < 0)
		return -1;
	return added_remove(task, error);
}

/*
 * The task's own end, in its own process: the one way that all obey. Of what
 * all tasks of the node find alike one of them speaks.
 */
__attribute__((noreturn)) static void task_refuse(const struct task *task,
						  const char *why)
{
	const char *rank = task_getenv(task, "SLURM_PROCID");
	const char *node = task_getenv(task, "SLURMD_NODENAME");
	const char *local = task_getenv(task, "SLURM_LOCALID");

	if (!task->alike || !local || strcmp(local, "0") == 0)
		dprintf(STDERR_FILENO, "slurm-ddp: rank %s on %s: %s\n",
			rank ? rank : "?", node ? node : "?", why);
	_exit(1);
}

void ddp_stepd_task_init(spank_t spank)
{
	struct task task = { .spank = spank };
	struct ddp_error error;
	int users;

	if (!ddp_plugin.on)
		return;
	users = task_is_users(&task, &error);
	if (users == 0)
		return;
	if (task_environment(&task, &error) < 0)
		users = -1;
	task.alike = true;
	if (ddp_options_error())
		task_refuse(&task, ddp_options_error());
	task.alike = false;
	if (users < 0 || task_read(&task, &error) < 0 ||
	    task_place(&task, &error) < 0)
		task_refuse(&task, error.text);
	task.alike = true;
	if (task_meet(&task, &error) < 0)
		task_refuse(&task, error.text);
	task.alike = false;
	if (task_export(&task, &error) < 0)
		task_refuse(&task, error.text);
	ddp_layout_destroy(task.layout);
}

/*
 * Once a step is being killed, srun drops what is on its way from the tasks:
 * the last words of the one that failed, or of task_refuse. They get a head
 * start over the news of the failure, such as slurmstepd itself gives them
 * where other tasks still run on the node.
 */
void ddp_stepd_task_exit(spank_t spank)
{
	const struct timespec head_start = { .tv_nsec = 200000000 };
	struct task task = { .spank = spank };
	static bool given;
	int status;

	if (ddp_plugin.on && !given && task_is_users(&task, NULL) > 0 &&
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &status) ==
	    ESPANK_SUCCESS && status != 0) {
		given = true;
		nanosleep(&head_start, NULL);
	}
}
