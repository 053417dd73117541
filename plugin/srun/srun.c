/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's work in srun, in its order. */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/ranks.h"
#include "options/options.h"
#include "options/plugin.h"
#include "request/launcher.h"
#include "srun/again.h"
#include "srun/cli.h"
#include "srun/check.h"
#include "srun/rerun.h"
#include "srun/explain.h"
#include "srun/fill.h"
#include "srun/folder.h"
#include "srun/help.h"
#include "srun/launch.h"
#include "srun/mpi.h"
#include "srun/order.h"
#include "srun/outer.h"
#include "srun/policy.h"
#include "srun/preflight.h"
#include "srun/supervise.h"
#include "supervisor/child.h"

enum { MAPPING_MAX = 100 << 10 };	/* execve takes 128 KiB in one string */

void ddp_srun_init(void)
{
	const char *bind = getenv("SLURM_CPU_BIND");
	const char *per_node = getenv("SLURM_NTASKS_PER_NODE");

	ddp_options_help = ddp_help_print;
	ddp_outer_remove();
	ddp_srun.per_node_before = per_node ? strdup(per_node) : NULL;
	if (bind && getenv("SLURM_STEP_ID"))
		ddp_srun.bind_before = strdup(bind);
	ddp_mpi_init();
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

/*
 * The earlier components were read as those of a plain step, and with the
 * first one srun put its own choice where the user's may be: that is undone.
 */
__attribute__((noreturn)) static void begin_again(void)
{
	ddp_mpi_restore();
	ddp_rerun_exec(0);
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

/* A component that is part of a --ddp step. */
static void read_component(uint32_t component)
{
	bool checks = ddp_plugin.check && !ddp_plugin.dry_run &&
		      !ddp_srun.again;
	bool filled = false;

	if (component > ddp_srun.done && !ddp_srun.was_on)
		begin_again();
	ddp_srun.was_on = true;
	if (component >= ddp_srun.done)
		ddp_policy_check(component);
	ddp_again_check(ddp_supervise_ends());
	if (checks && !ddp_plugin.spares)
		ddp_preflight(NULL, NULL);
	if (ddp_again_place(checks)) {
		ddp_mpi_restore();
		ddp_rerun_exec(component);
	}
	ddp_launch_read(component);
	if (!ddp_cli_available())
		ddp_check_tasks();
	else if (component >= ddp_srun.done)
		filled = ddp_fill_component(component);
	if ((is_last() && ddp_supervise()) || filled)
		ddp_rerun_exec(component + 1);
	if (ddp_plugin.dry_run && ddp_cli_available())
		ddp_check_dry_run();
	ddp_check_signals();
	if (component == 0) {
		ddp_check_step();
		ddp_folder_check_logs();
	}
	ddp_mpi_note();
	tell_bind();
	tell_pipe();
	ddp_outer_hide();
	set_poison();
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

/*
 * Tells the tasks what srun has made of --cpu-bind. A variable cannot be taken
 * out any more here, but "verbose" alone, which binds nothing, can be taken
 * back.
 */
static void correct_bind(void)
{
	const char *before = ddp_srun.bind_before;
	const char *bind = getenv("SLURM_CPU_BIND");
	const char *type = getenv("SLURM_CPU_BIND_TYPE");

	if (before && bind && strcmp(bind, before) != 0)
		ddp_rerun_add(DDP_TELL_CPU_BIND, "1");
	else if (type && !*type)
		ddp_rerun_add(DDP_TELL_CPU_BIND, "0");
}

/* mpi/pmix tells tasks itself. NULL: what an outer step has told is wrong. */
static void tell_mapping(const char *mapping)
{
	if (mapping && strlen(mapping) < MAPPING_MAX)
		ddp_rerun_add(DDP_TELL_MAPPING, mapping);
	else if (getenv(DDP_TELL_MAPPING))
		ddp_rerun_add(DDP_TELL_MAPPING, "");
}

/*
 * Find out where the ranks of the step are, and tell the tasks. Of a
 * heterogeneous step Slurm shows one component only.
 */
static void read_order(spank_t spank, struct ddp_order *order)
{
	bool explains = ddp_plugin.explain || ddp_plugin.dry_run;
	uint32_t job_id, step_id, nodes;

	if (ddp_srun.component == 1 && (explains || !ddp_mpi_is_pmix()) &&
	    spank_get_item(spank, S_JOB_NNODES, &nodes) == ESPANK_SUCCESS &&
	    (explains || nodes > 1) &&
	    spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &step_id) == ESPANK_SUCCESS)
		ddp_order_read(job_id, step_id, order);
	tell_mapping(order->mapping);
}

/*
 * No refusal: the step is there and would stay. An #SBATCH line is for all steps of
 * a job, small ones too. Of a heterogeneous step the tasks alone know the size.
 */
static void tell_left_out(spank_t spank)
{
	struct ddp_error error;
	uint32_t tasks;

	if (ddp_plugin.show && ddp_srun.component == 1 &&
	    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) ==
	    ESPANK_SUCCESS &&
	    ddp_ranks_check("--ddp-show", ddp_plugin.show, tasks, &error) < 0)
		slurm_info("slurm-ddp: %s", error.text);
}

/* The supervisor must know who should begin; it knows one component's nodes. */
static void tell_launch(spank_t spank)
{
	struct ddp_child_launch launch;

	if (ddp_srun.supervised && ddp_srun.component == 1 &&
	    spank_get_item(spank, S_JOB_ID, &launch.job_id) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &launch.step_id) ==
	    ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &launch.tasks) ==
	    ESPANK_SUCCESS)
		ddp_child_tell_launch(ddp_srun.supervised, &launch);
}

/* Slurm calls this once, for whichever component comes first. */
void ddp_srun_launch(spank_t spank)
{
	struct ddp_order order = { .master = NULL };
	uint32_t job_id;

	ddp_output_release();
	if (!ddp_srun.was_on)
		return;
	tell_left_out(spank);
	correct_bind();
	if (spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS)
		ddp_policy_launch(job_id, ddp_srun.component > 1);
	read_order(spank, &order);
	if (ddp_plugin.explain || ddp_plugin.dry_run)
		ddp_explain(spank, ddp_srun.component > 1, order.master);
	ddp_order_free(&order);
	tell_launch(spank);
}

void ddp_srun_exit(void)
{
	ddp_output_release();
}
