/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In slurmstepd: the parts of task_init in their order, in the task's own
 * process, as the user, when all that Slurm sets for the task is set. Whatever
 * cannot be worked out ends the task with one line, which is what srun then
 * shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layout/text.h"
#include "node.h"
#include "plugin.h"
#include "task.h"

/* Whether hardware matters: otherwise none is looked at. */
static bool placing(void)
{
	return ddp_plugin.gpus != DDP_GPUS_OFF ||
	       ddp_plugin.cpus != DDP_CPUS_OFF || ddp_plugin.explain ||
	       ddp_plugin.dry_run;
}

void ddp_stepd_post_opt(spank_t spank)
{
	uint32_t tasks;

	if (ddp_plugin.on && !ddp_options_error() && placing() &&
	    ddp_task_is_users(spank, NULL) > 0 &&
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) ==
	    ESPANK_SUCCESS)
		ddp_node_prepare(tasks);
}

/*
 * The task's own end, in its own process: the one way that all obey. Of those
 * that end on a node the first speaks; where tasks share nothing, of what all
 * of them find alike the one with local rank 0.
 */
__attribute__((noreturn)) static void task_refuse(const struct ddp_task *task,
						  const char *why)
{
	const char *rank = ddp_task_getenv(task, "SLURM_PROCID");
	const char *node = ddp_task_getenv(task, "SLURMD_NODENAME");
	const char *local = ddp_task_getenv(task, "SLURM_LOCALID");
	char text[1024];

	snprintf(text, sizeof(text), "rank %.16s on %.255s: %s",
		 rank ? rank : "?", node ? node : "?", why);
	if (ddp_node_fail(!task->alike || !local || strcmp(local, "0") == 0))
		dprintf(STDERR_FILENO, "slurm-ddp: %s\n",
			ddp_text_quote(text));
	_exit(1);
}

/* In place of the user's program; as the user would find it, or our own. */
__attribute__((noreturn)) static void dry_run(struct ddp_task *task)
{
	const char *at = ddp_task_getenv(task, "PATH");
	char *argv[] = { (char *)"ddp-info", (char *)"--gather", NULL };
	char path[PATH_MAX], why[512];
	size_t length;

	for (; at && *at; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		snprintf(path, sizeof(path), "%.*s/ddp-info", (int)length, at);
		execve(path, argv, task->environment);
	}
	execve(DDP_BINDIR "/ddp-info", argv, task->environment);
	snprintf(why, sizeof(why), "--ddp=dry-run needs ddp-info on every "
		 "node, in PATH or as " DDP_BINDIR "/ddp-info: %s",
		 strerror(errno));
	task->alike = true;
	task_refuse(task, why);
}

void ddp_stepd_task_init(spank_t spank)
{
	struct ddp_task task = { .spank = spank };
	struct ddp_error error;
	int rc;

	if (!ddp_plugin.on)
		return;
	rc = ddp_task_is_users(spank, &error);
	if (rc == 0)
		return;
	if (ddp_task_environment(&task, &error) < 0)
		rc = -1;
	task.alike = true;
	if (ddp_options_error())
		task_refuse(&task, ddp_options_error());
	task.alike = false;
	if (rc < 0 || ddp_task_read(&task, &error) < 0 ||
	    ddp_task_place(&task, &error) < 0)
		task_refuse(&task, error.text);
	task.alike = true;
	if (ddp_task_meet(&task, &error) < 0)
		task_refuse(&task, error.text);
	task.alike = false;
	rc = placing() ? ddp_task_join(&task, &error) : 0;
	if (rc > 0)
		_exit(1);
	if (rc < 0 || ddp_task_apply(&task, &error) < 0)
		task_refuse(&task, error.text);
	if (ddp_plugin.dry_run)
		dry_run(&task);
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
	static bool given;
	int status;

	if (ddp_plugin.on && !given && ddp_task_is_users(spank, NULL) > 0 &&
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &status) ==
	    ESPANK_SUCCESS && status != 0) {
		given = true;
		nanosleep(&head_start, NULL);
	}
}
