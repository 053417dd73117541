/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's hooks, switched by context; nothing else. All return 0: under
 * "optional" Slurm ignores anything else. So srun/rerun.c and
 * stepd/task_init.c refuse by ending the process, which works under "optional"
 * and "required" alike.
 */
#include "options/options.h"
#include "srun/srun.h"
#include "stepd/stepd.h"

/* The name is part of an exported variable: never change it. */
SPANK_PLUGIN(ddp, 1)

/*
 * Slurm loads the plugin once for all lines of plugstack.conf that name it, but
 * calls each hook once for each line.
 */
static struct {
	spank_context_t context;
	unsigned int lines;
	unsigned int post_opt_calls, user_init_calls, task_exit_calls;
	bool task_done;		/* each task is a process of its own */
} hooks;

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	hooks.context = spank_context();
	if (hooks.context != S_CTX_LOCAL && hooks.context != S_CTX_ALLOCATOR &&
	    hooks.context != S_CTX_REMOTE)
		return 0;
	ddp_options_read(argc, argv);
	if (hooks.lines++ > 0)
		return 0;
	if (hooks.context == S_CTX_LOCAL)
		ddp_srun_init();
	else if (hooks.context == S_CTX_ALLOCATOR)
		ddp_allocator_init();
	ddp_options_register(spank);
	return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (hooks.lines && hooks.post_opt_calls++ % hooks.lines)
		return 0;
	if (hooks.context == S_CTX_LOCAL)
		ddp_srun_post_opt();
	else if (hooks.context == S_CTX_ALLOCATOR)
		ddp_allocator_post_opt();
	else if (hooks.context == S_CTX_REMOTE)
		ddp_root_post_opt(spank);
	return 0;
}

int slurm_spank_local_user_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (hooks.lines && hooks.user_init_calls++ % hooks.lines)
		return 0;
	ddp_srun_launch(spank);
	return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!hooks.task_done)
		ddp_task_init(spank);
	hooks.task_done = true;
	return 0;
}

int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (hooks.lines && hooks.task_exit_calls++ % hooks.lines)
		return 0;
	ddp_root_task_exit(spank);
	return 0;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (hooks.context == S_CTX_LOCAL)
		ddp_srun_exit();
	else if (hooks.context == S_CTX_REMOTE)
		ddp_root_exit(spank);
	return 0;
}
