/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives a task what was chosen for it: CPUs, memory policy, variables. */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout/port_range.h"
#include "options/plugin.h"
#include "util/text.h"

enum {
	NUMA_MAX = 1024,		/* the kernel has no more */
	NUMA_BITS = 8 * sizeof(unsigned long),
	RECORD_SIZE = DDP_VARS_RECORD_SIZE + DDP_ENV_MAX * DDP_ENV_SIZE +
		      DDP_TF_SIZE
};

/* Does not touch the CPUs where nothing is to change. */
static int bind_cpus(const struct ddp_placement *placement,
		     struct ddp_error *error)
{
	struct ddp_cpuset mask;

	if (ddp_task_mask(&mask, error) < 0)
		return -1;
	if (ddp_cpuset_empty(&placement->cpus) ||
	    ddp_cpuset_equal(&placement->cpus, &mask))
		return 0;
	if (sched_setaffinity(0, sizeof(placement->cpus),
			      (const cpu_set_t *)&placement->cpus) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the kernel does not "
			     "bind the task to its CPUs: %s", strerror(errno));
}

/*
 * Does not override a --mem-bind. It is no error if the kernel does not allow
 * it: memory then comes from where the thread runs, which is near as well.
 */
static void prefer_memory(const struct ddp_task *task)
{
	const char *bind = ddp_task_getenv(task, "SLURM_MEM_BIND_TYPE");
	unsigned long nodes[NUMA_MAX / NUMA_BITS] = { 0 };
	int32_t numa = task->placement.memory_numa;
	int mode;

	if ((bind && *bind) || numa < 0 || numa >= NUMA_MAX ||
	    syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) < 0 ||
	    mode != MPOL_DEFAULT)
		return;
	nodes[(size_t)numa / NUMA_BITS] = 1ul << (size_t)numa % NUMA_BITS;
	syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NUMA_MAX + 1);
}

/* Take out the input variables that the plugin filled in for srun. */
static int remove_hidden(struct ddp_task *task, struct ddp_error *error)
{
	const char *names = ddp_task_getenv(task, DDP_TELL_HIDDEN);
	char *copy, *name, *save;
	int rc;

	if (!names)
		return 0;
	copy = strdup(names);
	if (!copy)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	rc = ddp_task_setenv(task, DDP_TELL_HIDDEN, NULL, error);
	for (name = strtok_r(copy, " ", &save); name && rc == 0;
	     name = strtok_r(NULL, " ", &save))
		rc = ddp_task_setenv(task, name, NULL, error);
	free(copy);
	return rc;
}

/*
 * Slurm takes out the options that a job has handed on, as they would count for
 * steps that the task starts. But it leaves each that stands behind another one
 * (spank_clear_remote_options_env() of its common/spank.c).
 */
static int remove_options(struct ddp_task *task, struct ddp_error *error)
{
	static const char handed[] = DDP_HANDED;
	char **at = task->environment, *name;
	int rc = 0;

	while (rc == 0 && *at) {
		if (strncmp(*at, handed, strlen(handed)) != 0 ||
		    !strchr(*at, '=')) {
			at++;
			continue;
		}
		name = strndup(*at, strcspn(*at, "="));
		rc = name ? ddp_task_setenv(task, name, NULL, error) :
			ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		free(name);
		at = task->environment;
	}
	return rc;
}

/*
 * Writes the value to out[size], with the job for %j, the node for %n, the task's
 * number for %t and the user's for %u. Any other % is a program's, as in
 * NCCL_DEBUG_FILE. Returns 0, or -1 if it does not fit.
 */
static int expand(const struct ddp_task *task, const char *value, char *out,
		  size_t size)
{
	struct ddp_text text = { 0 };
	char *all;
	int rc;

	for (; *value; value++) {
		if (strncmp(value, "%j", 2) == 0)
			ddp_text_add(&text, "%u", task->job_id);
		else if (strncmp(value, "%n", 2) == 0)
			ddp_text_add(&text, "%s", task->vars.rank.host);
		else if (strncmp(value, "%t", 2) == 0)
			ddp_text_add(&text, "%u", task->rank);
		else if (strncmp(value, "%u", 2) == 0)
			ddp_text_add(&text, "%u", (unsigned int)geteuid());
		else
			ddp_text_add(&text, "%c", *value);
		value += *value == '%' && value[1] && strchr("jntu", value[1]);
	}
	all = ddp_text_finish(&text);
	rc = all && snprintf(out, size, "%s", all) < (int)size ? 0 : -1;
	free(all);
	return rc;
}

/* The site's variables, but for those that the user has exported. */
static int export_site(struct ddp_task *task, char *record,
		       struct ddp_error *error)
{
	char name[DDP_ENV_SIZE], expanded[DDP_ENV_SIZE];
	const char *value;
	size_t i;

	for (i = 0; i < ddp_plugin.env_count; i++) {
		value = strchr(ddp_plugin.env[i], '=');
		snprintf(name, sizeof(name), "%.*s",
			 (int)(value - ddp_plugin.env[i]), ddp_plugin.env[i]);
		if (ddp_task_getenv(task, name))
			continue;
		if (expand(task, value + 1, expanded, sizeof(expanded)) < 0)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "env=%.64s: its value is longer "
					     "than %d bytes here; shorten it "
					     "in plugstack.conf",
					     ddp_plugin.env[i],
					     DDP_ENV_SIZE - 1);
		if (ddp_vars_record_add(record, RECORD_SIZE, name,
					expanded) < 0)
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
					     "%s is too long", name);
		if (ddp_task_setenv(task, name, expanded, error) < 0)
			return -1;
	}
	return 0;
}

/*
 * Returns whether the user has exported a WORLD_SIZE for a launcher, as
 * --num_processes $WORLD_SIZE, which counts ranks, and not launchers.
 */
static bool keeps_world(const struct ddp_task *task, const char *name)
{
	const char *value = task->launcher && strcmp(name, "WORLD_SIZE") == 0 ?
		ddp_task_users(task, name) : NULL;

	return value && strcmp(value, DDP_POISON) != 0;
}

/* Set a row's variable, and write down that it was set. */
static int export_var(struct ddp_task *task, size_t row, char *record,
		      struct ddp_error *error)
{
	const struct ddp_var *var = ddp_vars_get(row);
	bool forced = ddp_plugin.port && strcmp(var->name, "MASTER_PORT") == 0;
	bool recorded = var->rule == DDP_VAR_OURS || var->rule == DDP_VAR_USERS;
	char buffer[DDP_VARS_BUFFER_SIZE];
	const char *value;

	if (((var->rule == DDP_VAR_USERS && ddp_task_users(task, var->name)) ||
	     keeps_world(task, var->name)) && !forced)
		return 0;
	value = ddp_vars_value(row, &task->vars, buffer);
	/*
	 * If there is no value, what Slurm or another has set stays. The rest
	 * is taken out, as an empty variable of the user's counts as none.
	 */
	if (!value && (var->rule == DDP_VAR_OURS ||
		       var->rule == DDP_VAR_SLURMS))
		return 0;
	if (value && recorded &&
	    ddp_vars_record_add(record, RECORD_SIZE, var->name, value) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "%s is too long", var->name);
	return ddp_task_setenv(task, var->name, value, error);
}

/* Count the GPUs that the task is going to see. */
static uint32_t count_gpus(const struct ddp_task *task)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	};
	const char *list = task->vars.visible;
	size_t i;

	list = list && *list ? strchr(list, '=') + 1 : NULL;
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !list; i++)
		list = ddp_task_users(task, names[i]);
	return ddp_vars_count_gpus(list);
}

/*
 * A launcher's ranks share the task's CPUs. Where nobody knows how many there
 * will be, the launcher chooses their threads. A program that alone has several
 * GPUs may start ranks, too; OpenMP itself counts the CPUs of each.
 */
static uint32_t count_threads(const struct ddp_task *task, uint32_t cpus)
{
	uint32_t ranks = task->launcher_ranks;

	if (!task->launcher)
		return task->local_count == 1 && task->vars.gpus > 1 ? 0 : cpus;
	if (!ranks && ddp_task_getenv_number(task, "PET_NPROC_PER_NODE",
					     &ranks, NULL) < 0)
		ranks = task->vars.gpus;
	if (!ranks)
		return 0;
	return cpus > ranks ? cpus / ranks : 1;
}

static int export_vars(struct ddp_task *task, struct ddp_error *error)
{
	static char record[RECORD_SIZE];
	struct ddp_cpuset mask;
	size_t row;

	if (ddp_task_mask(&mask, error) < 0)
		return -1;
	task->vars.gpus = count_gpus(task);
	task->vars.cpus = count_threads(task, ddp_cpuset_count(&mask));
	task->vars.job_id = task->job_id;
	task->vars.step_id = task->step_id;
	task->vars.record = record;
	ddp_vars_record_begin(record, RECORD_SIZE, task->job_id,
			      task->step_id);
	if (export_site(task, record, error) < 0)
		return -1;
	for (row = 0; ddp_vars_get(row); row++)
		if (export_var(task, row, record, error) < 0)
			return -1;
	task->vars.record = NULL;
	return 0;
}

int ddp_task_apply(struct ddp_task *task, struct ddp_error *error)
{
	if (bind_cpus(&task->placement, error) < 0)
		return -1;
	prefer_memory(task);
	/* First: what was hidden may be set to what is right for tasks. */
	if (remove_hidden(task, error) < 0 || remove_options(task, error) < 0)
		return -1;
	return export_vars(task, error);
}
