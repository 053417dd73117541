/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that runs as root, in slurmstepd itself: memory is mapped that the tasks
 * share, and there is a pause when a task has failed. The only other code of
 * the plugin that runs as root is the parsing of its options and arguments, in
 * options.c, site.c and keys.c. None of it reads an environment or a file, or
 * what tasks write.
 */
#define _GNU_SOURCE
#include "stepd/root.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "layout/launcher.h"
#include "options.h"
#include "plugin.h"
#include "stepd/shared.h"
#include "stepd/stepd.h"

enum {
	SPECIAL_STEPS = 0xfffffffa,	/* batch, interactive, extern, ... */
	PAUSE_NS = 200000000
};

struct ddp_stepd ddp_stepd = {
	.error = {
		.code = DDP_ERROR_SYSTEM,
		.text = "Slurm did not tell slurmstepd of this node's tasks",
	},
};

int ddp_step_error(const char *item, spank_err_t why, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "Slurm does not tell %s (%s)", item,
			     spank_strerror(why));
}

int ddp_step_is_users(spank_t spank, struct ddp_error *error)
{
	uint32_t step_id;
	char **argv = NULL;
	int argc = 0;
	spank_err_t why;

	why = spank_get_item(spank, S_JOB_STEPID, &step_id);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the step id", why, error);
	if (step_id >= SPECIAL_STEPS)
		return 0;
	why = spank_get_item(spank, S_JOB_ARGV, &argc, &argv);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the command", why, error);
	return argc < 1 || !ddp_launcher_is_helper(argv[0]);
}

/*
 * Memory for the tasks to share. It has no name, so that nobody else can reach
 * it. Only what is touched of it takes memory, and it is gone with the
 * processes.
 */
static struct ddp_siblings *map_siblings(uint32_t tasks,
					 struct ddp_error *error)
{
	size_t size = sizeof(struct ddp_siblings) + ddp_node_size(tasks);
	struct ddp_siblings *siblings;
	int i;

	if (tasks > DDP_PLACEMENT_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "%u tasks on this node are more than the %d that "
			      "can be placed; start fewer, or use "
			      "--ddp-gpus=off --ddp-cpus=off", tasks,
			      DDP_PLACEMENT_MAX);
		return NULL;
	}
	siblings = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (siblings == MAP_FAILED) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for %u tasks "
			      "to share: %s", tasks, strerror(errno));
		return NULL;
	}
	siblings->count = tasks;
	for (i = 0; i < DDP_GATE_COUNT; i++)
		sem_init(&siblings->gates[i], 1, 0);
	return siblings;
}

/*
 * What goes wrong here each of the tasks then finds in ddp_stepd.error. Whether
 * they place at all can depend on the partition, which only they know.
 */
void ddp_root_post_opt(spank_t spank)
{
	uint32_t tasks;

	if (ddp_plugin.on && !ddp_options_error() &&
	    ddp_step_is_users(spank, NULL) > 0 &&
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) ==
	    ESPANK_SUCCESS)
		ddp_stepd.siblings = map_siblings(tasks, &ddp_stepd.error);
}

/*
 * Once a step is being killed, srun drops what is on its way from the tasks:
 * the last words of the task that failed, or the sentence of a refusal. The
 * pause gives them a head start over the news of the failure, as slurmstepd
 * itself does where other tasks still run on the node.
 */
void ddp_root_task_exit(spank_t spank)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int status;

	if (ddp_plugin.on && !ddp_stepd.paused &&
	    ddp_step_is_users(spank, NULL) > 0 &&
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &status) ==
	    ESPANK_SUCCESS && status != 0) {
		ddp_stepd.paused = true;
		nanosleep(&pause, NULL);
	}
}
