/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's work in srun, in its order; then that in sbatch and salloc. */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/vars.h"
#include "options/options.h"
#include "options/site.h"
#include "place/report.h"
#include "request/launcher.h"
#include "srun/cli.h"
#include "srun/rerun.h"

/* ---- --ddp=help */

/* One screen of 24 lines and 80 columns. */
static const char help[] =
"srun --ddp [OPTION...] COMMAND: one data-parallel job, one task a GPU\n"
"  --ddp=explain            say what is chosen, and why\n"
"  --ddp=dry-run            show all ranks in a table, and run nothing\n"
"  --ddp=torchrun | srun    who starts a node's ranks: COMMAND, or srun\n"
"  --ddp=on | off           with --ddp and no more; without --ddp\n"
"  --ddp-gpus=all | own     a task sees the node's GPUs, or its own alone\n"
"  --ddp-gpus=share | off   several tasks a GPU; GPUs as Slurm gives them\n"
"  --ddp-cpus=near | spread | off    CPUs near the GPU; over the node; as given\n"
"  --ddp-order=network      ranks follow the cluster's switches or blocks\n"
"  --ddp-port=PORT          MASTER_PORT\n"
"  --ddp-env=tf             TF_CONFIG, too\n"
"  --ddp-check[=SECONDS]    check the nodes first\n"
"  --ddp-logs=DIR           a file for the output of each rank\n"
"  --ddp-show=RANKS         print the output of these ranks alone: 0,3-5\n"
"  --ddp-report=FILE        how the step ended, as JSON\n"
"  --ddp-grace=SECONDS      time for the other ranks when one has failed\n"
"  --ddp-watchdog=SECONDS | off      end a step without progress\n"
"  --ddp-restarts=N         start a failed step again, so often\n"
"  --ddp-spares=K           keep K nodes back, to replace lost ones\n"
"  --ddp-signal=SIGNAL@SECONDS       a signal before the job's end\n"
"  --ddp-supervise=off      no supervisor\n"
"sbatch and salloc take them for the steps of a job. Manual: man slurm-ddp\n";

__attribute__((noreturn)) static void print_help(void)
{
	ddp_output_release();
	fputs(help, stdout);
	exit(fflush(stdout) == 0 ? 0 : 1);
}

/* ---- steps around this one, and within */

/* A value that has been changed since is the user's, and stays. */
static void remove_recorded(const char *record, const char *name)
{
	const char *value = getenv(name);

	if (value && ddp_vars_recorded(record, name, value))
		unsetenv(name);
}

/*
 * srun, sbatch and salloc can be started from within a --ddp step. Takes out of
 * the environment what that has set for its own tasks, before the command line
 * is read. Without DDP_SET there is no such step.
 */
static void remove_outer(void)
{
	const char *record = getenv(DDP_VARS_RECORD), *variable;
	const struct ddp_var *var;
	char name[DDP_ENV_SIZE];
	size_t i;

	if (!record)
		return;
	for (i = 0; (var = ddp_vars_get(i)); i++)
		remove_recorded(record, var->name);
	for (i = 0; (variable = ddp_site_env(i)); i++) {
		snprintf(name, sizeof(name), "%.*s",
			 (int)strcspn(variable, "="), variable);
		remove_recorded(record, name);
	}
	unsetenv(DDP_PLACEMENT);
	unsetenv(DDP_VARS_RECORD);
}

static void hide(const char *name)
{
	if (getenv(name))
		ddp_rerun_hide(name);
}

/*
 * Hides from srun's tasks what sbatch and salloc say to srun, and those options
 * of the job that are about the watch over one step.
 */
static void hide_jobs(void)
{
	char name[64], *at;
	size_t i;

	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		if (!ddp_option_table[i].watches)
			continue;
		snprintf(name, sizeof(name), DDP_INHERITED "%s",
			 ddp_option_table[i].name + strlen("--"));
		for (at = name; *at; at++)
			if (*at == '-')
				*at = '_';
		hide(name);
	}
	hide(DDP_TELL_NO_KILL);
}

/* ---- srun */

/* A variable's value now, for ever; NULL: it is not set. */
static char *keep(const char *name)
{
	const char *value = getenv(name);

	return value ? strdup(value) : NULL;
}

void ddp_srun_init(void)
{
	ddp_options_help = print_help;
	remove_outer();
	ddp_srun.per_node_before = keep("SLURM_NTASKS_PER_NODE");
	if (getenv("SLURM_STEP_ID"))
		ddp_srun.bind_before = keep("SLURM_CPU_BIND");
	ddp_srun.mpi_before = keep("SLURM_MPI_TYPE");
	ddp_rerun_init();
}

/* mpirun starts its daemons, and salloc its shell, by an srun of its own. */
static bool is_users(void)
{
	char **argv = ddp_arguments_read();
	bool users = !ddp_cli_get("interactive");
	char **command = NULL;

	if (ddp_srun.component == 0)
		command = ddp_arguments_command(argv, 0);
	if (command)
		users &= !ddp_launcher_is_helper(command[0]);
	ddp_arguments_free(argv);
	return users;
}

/* srun put its own choice where the user's may be, with the first component. */
__attribute__((noreturn)) static void begin_again(uint32_t component)
{
	ddp_mpi_restore();
	ddp_rerun_exec(component, NULL);
}

/*
 * Tell the tasks that the user gave --cpu-bind, in whichever component. Where
 * an outer step has left its own in the environment, it counts as given anyway,
 * and only what srun makes of it tells; see correct_bind.
 */
static void tell_bind(void)
{
	if (!ddp_srun.bind_before && ddp_cli_isset("cpu-bind"))
		ddp_rerun_add(DDP_TELL_CPU_BIND, "1");
}

static void tell_children(void)
{
	if (ddp_cli_isset("wait-for-children"))
		ddp_rerun_add(DDP_TELL_CHILDREN, "1");
}

/*
 * Tasks on a node where the plugin is missing find this. A launcher may be told
 * the number of its ranks by the user's WORLD_SIZE.
 */
static void set_poison(void)
{
	setenv("RANK", DDP_POISON, 1);
	setenv("LOCAL_RANK", DDP_POISON, 1);
	setenv("WORLD_SIZE", DDP_POISON, ddp_srun.launcher == NULL);
}

static bool begins_container(uint32_t component)
{
	char **argv = ddp_arguments_read();
	char **command = ddp_arguments_command(argv, component);
	bool begins = command && ddp_command_is_contained(command);

	ddp_arguments_free(argv);
	return begins;
}

/*
 * A container may lack the folder in which PMIx shares a file with the ranks of a
 * node, and its PMIx may be another: each rank gets a copy of its own.
 *
 * pyxis gives each task the variables of the container's first process, and for
 * images of PyTorch a hook of enroot has put its own choice among them: a port for
 * the whole job, and one thread a rank. Those that are named here stay.
 */
static void keep_in_container(uint32_t component)
{
	bool pyxis = ddp_check_is_contained();

	if (pyxis)
		setenv("PYXIS_CONTAINER_ENV", "MASTER_ADDR,MASTER_PORT,"
		       "WORLD_SIZE,OMP_NUM_THREADS", 0);
	if (pyxis || begins_container(component))
		setenv("PMIX_MCA_gds", "hash", 0);
}

/* --ddp-logs and --ddp-show are for people, or for files. */
static void tell_pipe(void)
{
	struct stat status;

	if ((ddp_plugin.logs || ddp_plugin.show) &&
	    fstat(STDOUT_FILENO, &status) == 0 && S_ISFIFO(status.st_mode))
		ddp_rerun_add(DDP_TELL_PIPE, "1");
}

/* Returns true if no component follows this one on the command line. */
static bool is_last(void)
{
	char **argv = ddp_arguments_read();

	ddp_srun.words = ddp_arguments_next(argv, ddp_srun.words);
	ddp_arguments_free(argv);
	return ddp_srun.words == 0;
}

/* The step's nodes, where --ddp-spares or --ddp-check have a word in that. */
static void choose_nodes(uint32_t component, bool checks)
{
	struct ddp_restart restart = { .max = 0 };
	struct ddp_text unfit = { 0 };

	if (ddp_again_choose(&restart)) {
		if (checks)
			ddp_preflight(&restart, &unfit);
		ddp_again_place(&restart, &unfit);
		begin_again(component);
	}
	if (checks)
		ddp_preflight(NULL, NULL);
}

/* A component that is part of a --ddp step. */
static void read_component(uint32_t component)
{
	bool filled = false;

	/* The earlier components were read as those of a plain step. */
	if (component > ddp_srun.done && !ddp_srun.was_on)
		begin_again(0);
	ddp_srun.was_on = true;
	if (component >= ddp_srun.done)
		ddp_policy_check(component);
	ddp_check_defaults();
	ddp_again_check();
	choose_nodes(component, ddp_plugin.check && !ddp_plugin.dry_run &&
		     !ddp_srun.again);
	ddp_launch_read(component);
	if (!ddp_cli_available())
		ddp_check_tasks();
	else if (component >= ddp_srun.done)
		filled = ddp_fill_component(component);
	if ((is_last() && ddp_supervise()) || filled || ddp_order_nodes())
		ddp_rerun_exec(component + 1, NULL);
	if (ddp_plugin.dry_run && ddp_cli_available())
		ddp_check_dry_run();
	ddp_check_signals();
	if (component == 0)
		ddp_check_step();
	ddp_srun.mpi_given = ddp_cli_isset("mpi");
	tell_bind();
	tell_children();
	tell_pipe();
	hide_jobs();
	set_poison();
	keep_in_container(component);
}

void ddp_srun_post_opt(void)
{
	bool on = ddp_check_options() && is_users();

	if (on)
		read_component(ddp_srun.component);
	else if (ddp_srun.was_on || ddp_srun.again)
		ddp_srun_refuse("--ddp=off: given for one component of a "
				"heterogeneous step only; give it for all, or "
				"for none");
	if (++ddp_srun.component >= ddp_srun.expected)
		ddp_output_release();
}

void ddp_srun_exit(void)
{
	ddp_output_release();
}

/* ---- sbatch and salloc */

void ddp_allocator_init(void)
{
	char **argv = ddp_arguments_read();

	ddp_options_help = print_help;
	/* sbatch wants a script before it reads the options of plugins. */
	if (argv && argv[0] && argv[1] && strcmp(argv[1], "--ddp=help") == 0)
		print_help();
	ddp_arguments_free(argv);
	remove_outer();
	unsetenv(DDP_TELL_NO_KILL);	/* of a job around this one */
}

/* Slurm tells nobody later whether a job has --no-kill. A warning is enough. */
static void tell_kill(void)
{
	const char *no_kill = ddp_cli_get("no-kill");
	bool kept = no_kill && strcmp(no_kill, "set") == 0;

	if (kept || ddp_plugin.spares)
		setenv(DDP_TELL_NO_KILL, "1", 1);
	if (ddp_plugin.spares && !kept)
		slurm_info("slurm-ddp: --ddp-spares: when Slurm gives a lost "
			   "node up, it ends the job; add --no-kill");
}

/* --ddp does nothing for a job that starts no step; a script may start one. */
static void check_wrap(void)
{
	const char *wrap = ddp_cli_get("wrap");

	if (wrap && !strstr(wrap, "srun") &&
	    (strstr(wrap, "python") || strstr(wrap, "torchrun") ||
	     strstr(wrap, "accelerate ")))
		slurm_info("slurm-ddp: --wrap: --ddp is for the srun commands "
			   "of a job, and this has none; wrap 'srun COMMAND'");
}

void ddp_allocator_post_opt(void)
{
	if (!ddp_check_options() || !ddp_cli_available())
		return;
	ddp_policy_check(0);
	tell_kill();
	ddp_check_signals();
	if (!ddp_plugin.cpus_trust)
		ddp_check_cpus();
	check_wrap();
	ddp_launch_check_script();
}
