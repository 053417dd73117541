/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's entry points, switched by context; nothing else. All return 0:
 * under "optional" Slurm ignores anything else, so that refusing is done in
 * srun.c and stepd.c, the same way under "optional" and "required".
 */
#include "plugin.h"

/* The name is part of an exported variable: it stays as it is for ever. */
SPANK_PLUGIN(ddp, 1)

/*
 * Lines of plugstack.conf that name this plugin. Slurm loads it once for all
 * of them, and calls each hook once a line.
 */
static unsigned int lines;
static spank_context_t context;

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	context = spank_context();
	if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR &&
	    context != S_CTX_REMOTE)
		return 0;
	ddp_options_read(argc, argv);
	if (lines++ > 0)
		return 0;
	if (context != S_CTX_REMOTE)
		ddp_outer_remove();
	if (context == S_CTX_LOCAL)
		ddp_srun_init();
	ddp_options_register(spank);
	return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	static unsigned int calls;

	(void)argc;
	(void)argv;
	if (lines && calls++ % lines)
		return 0;
	switch (context) {
	case S_CTX_LOCAL:
		ddp_srun_post_opt();
		return 0;
	case S_CTX_ALLOCATOR:
		ddp_allocator_post_opt();
		return 0;
	case S_CTX_REMOTE:
		ddp_stepd_post_opt(spank);
		return 0;
	default:
		return 0;
	}
}

int slurm_spank_local_user_init(spank_t spank, int argc, char **argv)
{
	static unsigned int calls;

	(void)argc;
	(void)argv;
	if (lines && calls++ % lines)
		return 0;
	ddp_srun_launch(spank);
	return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	static bool done;	/* each task is a process of its own */

	(void)argc;
	(void)argv;
	if (!done)
		ddp_stepd_task_init(spank);
	done = true;
	return 0;
}

int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	ddp_stepd_task_exit(spank);
	return 0;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv)
{
	(void)spank;
	(void)argc;
	(void)argv;
	if (context == S_CTX_LOCAL)
		ddp_srun_exit();
	return 0;
}
