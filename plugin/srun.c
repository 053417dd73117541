/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In srun: the order of what the plugin does there, and every check that can
 * fail before anything runs. In sbatch and salloc: the checks only.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/text.h"
#include "plugin.h"

static uint32_t component;	/* whose turn it is; counts up */
static bool was_on;		/* --ddp, in the component before */
static char *bind_before;	/* an outer step's SLURM_CPU_BIND; or NULL */

void ddp_srun_refuse(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ddp_rerun_release();
	slurm_error("slurm-ddp: %s", ddp_text_quote(text));
	exit(1);
}

bool ddp_is_launcher_helper(const char *command)
{
	static const char *const helpers[] = {
		"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy",
	};
	const char *base = strrchr(command, '/');
	size_t i;

	base = base ? base + 1 : command;
	for (i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (strcmp(base, helpers[i]) == 0)
			return true;
	return false;
}

/* mpirun starts its daemons, and salloc its shell, by an srun of its own. */
static bool not_the_users(void)
{
	char **argv = ddp_rerun_argv();
	bool helper = ddp_cli_get("interactive") != NULL;
	int i;

	/* srun's getopt has stopped at the command: arguments are not it. */
	for (i = 1; argv && argv[i] && i < optind; i++)
		;
	if (component == 0 && argv && argv[i])
		helper |= ddp_is_launcher_helper(argv[i]);
	ddp_rerun_argv_free(argv);
	return helper;
}

/* Without the accessors nothing can be filled in, so all must be said. */
static void insist_on_tasks(void)
{
	char **argv = ddp_rerun_argv();
	bool said = getenv("SLURM_NTASKS") || getenv("SLURM_NTASKS_PER_NODE");
	int i;

	for (i = 1; argv && argv[i] && i < optind; i++)
		said |= strncmp(argv[i], "-n", 2) == 0 ||
			strncmp(argv[i], "--ntasks", 8) == 0 ||
			strncmp(argv[i], "--tasks-per-node", 16) == 0;
	ddp_rerun_argv_free(argv);
	if (!said)
		ddp_srun_refuse("this srun does not show its options to "
				"plugins: say --ntasks-per-node");
}

/* Whether --ddp is on; refuses what can be refused in every program. */
static bool options_check(void)
{
	const char *error;

	if (ddp_plugin.stray && !ddp_plugin.seen && !ddp_rerun_on())
		ddp_srun_refuse("%s needs --ddp", ddp_plugin.stray);
	if (!ddp_plugin.on && (ddp_plugin.seen || !ddp_rerun_on()))
		return false;
	error = ddp_options_error();
	if (error)
		ddp_srun_refuse("%s", error);
	if (ddp_cli_get("no-allocate"))
		ddp_srun_refuse("--no-allocate makes a step without a job, "
				"and --ddp needs one: leave out one of them");
	return true;
}

void ddp_srun_init(void)
{
	const char *bind = getenv("SLURM_CPU_BIND");

	if (bind && getenv("SLURM_STEP_ID"))
		bind_before = strdup(bind);
	ddp_fill_init();
	ddp_rerun_init();
}

/*
 * The earlier components were read as those of a plain step, and with the
 * first one srun put its own choice where the user's may be: that is undone.
 */
__attribute__((noreturn)) static void begin_again(void)
{
	ddp_fill_restore();
	ddp_rerun_exec(0);
}

/*
 * Tell the tasks that the user has said --cpu-bind, in whichever component.
 * Where an outer step has left its own in the environment, that counts as said
 * by itself, and only what srun makes of it will tell.
 */
static void bind_tell(void)
{
	if (!bind_before && ddp_cli_isset("cpu-bind"))
		ddp_rerun_add(DDP_CPU_BIND, "1");
}

static void dry_run_check(void)
{
	static const char *const programs[] = {
		"prolog", "epilog", "task-epilog",
	};
	size_t i;

	if (!ddp_fill_has_pmix())
		ddp_srun_refuse("--ddp=dry-run gathers by PMIx: use it with "
				"--mpi=pmix");
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (ddp_cli_isset(programs[i]))
			ddp_srun_refuse("--ddp=dry-run runs nothing of yours: "
					"leave out --%s", programs[i]);
}

void ddp_srun_post_opt(void)
{
	bool on = options_check() && !not_the_users();

	if (!on && (was_on || ddp_rerun_on()))
		ddp_srun_refuse("--ddp=off in one component of a heterogeneous "
				"step: it is on or off for all of the step");
	if (!on) {
		ddp_rerun_component_read(component++);
		return;
	}
	if (component > ddp_rerun_done() && !was_on)
		begin_again();
	was_on = true;
	if (!ddp_cli_available())
		insist_on_tasks();
	else if (component >= ddp_rerun_done() &&
		 ddp_fill_component(component))
		ddp_rerun_exec(component + 1);
	if (ddp_plugin.dry_run && ddp_cli_available())
		dry_run_check();
	bind_tell();
	/* What a task finds on a node where nothing replaces it. */
	setenv("RANK", DDP_POISON, 1);
	setenv("LOCAL_RANK", DDP_POISON, 1);
	setenv("WORLD_SIZE", DDP_POISON, 1);
	ddp_rerun_component_read(component++);
}

/*
 * What srun has made of it. A variable cannot be taken out any more here, but
 * "verbose" alone, which binds nothing, can be taken back.
 */
static void bind_correct(void)
{
	const char *bind = getenv("SLURM_CPU_BIND");
	const char *type = getenv("SLURM_CPU_BIND_TYPE");

	if (bind_before && bind && strcmp(bind, bind_before) != 0)
		ddp_rerun_add(DDP_CPU_BIND, "1");
	else if (type && !*type)
		ddp_rerun_add(DDP_CPU_BIND, "0");
}

/* Once, for whichever component comes first. */
void ddp_srun_launch(spank_t spank)
{
	ddp_rerun_release();
	if (!was_on)
		return;
	bind_correct();
	if (ddp_plugin.explain || ddp_plugin.dry_run)
		ddp_explain(spank, component > 1);
}

void ddp_srun_exit(void)
{
	ddp_rerun_release();
}

void ddp_allocator_post_opt(void)
{
	if (options_check() && !ddp_plugin.cpus_trust && ddp_cli_available())
		ddp_fill_check();
}
