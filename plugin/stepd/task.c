/* SPDX-License-Identifier: BSD-3-Clause */
/* A task's environment, and what Slurm says of the task. */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/plugin.h"
#include "stepd/root.h"

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

const char *ddp_task_needenv(const struct ddp_task *task, const char *name,
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
	const char *text = ddp_task_needenv(task, name, error);
	unsigned long value;
	char *end;

	if (!text)
		return -1;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value > UINT32_MAX)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s=%.64s is not a number", name, text);
	*number = (uint32_t)value;
	return 0;
}

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
	if (task->launcher)
		return ddp_task_getenv_number(task, DDP_TELL_LAUNCHER,
					      &task->launcher_ranks, error);
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
