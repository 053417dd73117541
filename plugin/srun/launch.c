/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds torchrun and the like in the command of a step. */
#define _GNU_SOURCE
#include "srun/launch.h"

#include <stdio.h>

#include "layout/launcher.h"
#include "layout/request.h"
#include "plugin.h"
#include "srun/arguments.h"
#include "srun/asked.h"
#include "srun/context.h"
#include "srun/output.h"
#include "srun/rerun.h"

/*
 * Accelerate's --cpu starts one process and leaves the environment as it is: a
 * rank, not a launcher.
 */
static bool find_launcher(uint32_t component, struct ddp_launcher *launcher)
{
	char **argv = ddp_arguments_read();
	char **command = ddp_arguments_command(argv, component);
	bool found = command && ddp_launcher_find(command, launcher);

	ddp_arguments_free(argv);
	return found && !launcher->cpu;
}

/* A heterogeneous step has several nodes, though nobody knows how many yet. */
static void check(const struct ddp_launcher *launcher)
{
	struct ddp_request request;
	struct ddp_error error;
	uint32_t nodes;

	ddp_asked_read(&request);
	nodes = ddp_request_nodes(&request);
	if (ddp_srun.expected > 1)
		nodes = launcher->nodes_max > 1 ? launcher->nodes_max : 2;
	if ((nodes > 0 || launcher->kind == DDP_LAUNCHER_DEEPSPEED) &&
	    ddp_launcher_check(launcher, nodes, &error) < 0)
		ddp_srun_refuse("%s", error.text);
}

void ddp_launch_read(uint32_t component)
{
	struct ddp_launcher launcher = { .kind = DDP_LAUNCHER_NONE };
	char workers[16];

	ddp_srun.launcher = NULL;
	if (find_launcher(component, &launcher)) {
		check(&launcher);
		ddp_srun.launcher = launcher.name;
	} else if (ddp_plugin.torchrun) {
		ddp_srun.launcher = "torchrun";
	}
	if (!ddp_srun.launcher)
		return;
	snprintf(workers, sizeof(workers), "%u",
		 ddp_launcher_workers(&launcher));
	ddp_rerun_add(DDP_TELL_LAUNCHER, workers);
	if (ddp_launcher_needs_gpu(&launcher))
		ddp_rerun_add(DDP_TELL_NEEDS_GPU, launcher.name);
	if (ddp_launcher_needs_port(&launcher))
		ddp_rerun_add(DDP_TELL_NEEDS_PORT, launcher.name);
}
