/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks that can fail before anything runs. */
#define _GNU_SOURCE
#include "srun/check.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "options/options.h"
#include "options/plugin.h"
#include "request/request.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/asked.h"
#include "srun/rerun.h"
#include "srun/mpi.h"

/*
 * Returns true if a file's name has %t, %n or %N: Slurm then opens a file for
 * each task or node, on the nodes.
 */
static bool is_of_task(const char *name)
{
	while (name && (name = strchr(name, '%'))) {
		name++;
		name += strspn(name, "0123456789");
		if (*name && strchr("tnN", *name))
			return true;
	}
	return false;
}

/* Refuse what contradicts --ddp-logs and --ddp-show. */
static void check_logs(void)
{
	static const char *const files[] = { "output", "error" };
	const char *option = ddp_plugin.logs ? "--ddp-logs" : "--ddp-show";
	size_t i;

	if (!ddp_plugin.logs && !ddp_plugin.show)
		return;
	if (ddp_cli_isset("pty"))
		ddp_srun_refuse("%s: with --pty the output is one terminal's; "
				"leave out one of them", option);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is_of_task(ddp_cli_get(files[i])))
			ddp_srun_refuse("%s: the output goes to a file of each "
					"task or node already; leave out "
					"--%s=%.128s, or %s", option, files[i],
					ddp_cli_get(files[i]), option);
}

bool ddp_check_options(void)
{
	const char *error;

	if (ddp_plugin.stray && !ddp_plugin.seen && !ddp_srun.again)
		ddp_srun_refuse("%s: given without --ddp; add --ddp",
				ddp_plugin.stray);
	if (!ddp_plugin.on && (ddp_plugin.seen || !ddp_srun.again))
		return false;
	error = ddp_options_error();
	if (error)
		ddp_srun_refuse("%s", error);
	check_logs();
	if (ddp_plugin.check && ddp_cli_isset("async"))
		ddp_srun_refuse("--ddp-check: tells the result to an srun that "
				"waits; leave out it or --async");
	if (ddp_cli_get("no-allocate"))
		ddp_srun_refuse("--no-allocate: makes a step without a job, "
				"and --ddp needs one; leave out one of them");
	return true;
}

void ddp_check_step(void)
{
	if (ddp_asked_in_step() && !ddp_cli_isset("overlap"))
		slurm_info("slurm-ddp: this srun is in a task of a step, and "
			   "waits if that has the CPUs it needs; with --overlap "
			   "it shares them");
}

/* Returns true if an argument of srun itself begins with this. */
static bool has_argument(const char *begin)
{
	char **argv = ddp_arguments_read();
	bool found = false;
	int i;

	for (i = 1; argv && argv[i] && i < optind; i++)
		found |= strncmp(argv[i], begin, strlen(begin)) == 0;
	ddp_arguments_free(argv);
	return found;
}

void ddp_check_tasks(void)
{
	if (!getenv("SLURM_NTASKS") && !getenv("SLURM_NTASKS_PER_NODE") &&
	    !has_argument("-n") && !has_argument("--ntasks") &&
	    !has_argument("--tasks-per-node"))
		ddp_srun_refuse("this srun does not show its options to "
				"plugins; give --ntasks-per-node");
}

/*
 * Tell the tasks whether the command's first word is what they would execute.
 * Where there is no TaskProlog scontrol says "(null)".
 */
static void tell_command(void)
{
	bool given = ddp_cli_isset("task-prolog");
	char *config = given ? NULL : ddp_scontrol_show("config", NULL);
	const char *at = ddp_scontrol_find_setting(config, "TaskProlog");

	if (given || (at && strncmp(at, "(null)", 6) != 0))
		ddp_rerun_add(DDP_TELL_COMMAND, "prolog");
	else if (at)
		ddp_rerun_add(DDP_TELL_COMMAND, "1");
	free(config);
}

void ddp_check_dry_run(void)
{
	static const char *const programs[] = {
		"prolog", "epilog", "task-epilog",
	};
	size_t i;

	if (!ddp_mpi_is_pmix())
		ddp_srun_refuse("--ddp=dry-run: works by PMIx only; use it "
				"with --mpi=pmix");
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (ddp_cli_isset(programs[i]))
			ddp_srun_refuse("--ddp=dry-run: runs nothing of yours; "
					"leave out --%s", programs[i]);
	/*
	 * A container is Slurm's, or another plugin's, as --container-image of
	 * pyxis. One component says it for all.
	 */
	if (ddp_cli_isset("multi-prog") || has_argument("--container"))
		ddp_rerun_add(DDP_TELL_COMMAND, "0");
	else if (ddp_srun.component == 0)
		tell_command();
}

/* Slurm leaves @SECONDS out where it is the 60 that it takes by default. */
static void check_slurms_signal(const char *signal)
{
	const char *colon = strchr(signal, ':');

	if (colon && memchr(signal, 'B', (size_t)(colon - signal)))
		return;
	slurm_info("slurm-ddp: --signal=%s goes to every process of the ranks, "
		   "data loaders too; use --ddp-signal=%s%s, which goes to the "
		   "ranks alone", signal, colon ? colon + 1 : signal,
		   strchr(signal, '@') ? "" : "@60");
}

void ddp_check_signals(void)
{
	const char *signal = ddp_cli_get("signal");

	/* A step within a job does nothing with it. */
	if (signal && !ddp_cli_isset("jobid"))
		check_slurms_signal(signal);
	if (ddp_plugin.notice.number && ddp_srun.launcher)
		slurm_info("slurm-ddp: --ddp-signal goes to %s, not to the "
			   "ranks that it starts; leave %s out, and srun "
			   "starts one task a rank", ddp_srun.launcher,
			   ddp_srun.launcher);
}

void ddp_check_cpus(void)
{
	struct ddp_request request;
	struct ddp_error error;
	enum ddp_cpus cpus;
	uint32_t gpus;

	ddp_asked_read(&request);
	if (ddp_request_check_cpus(&request, &cpus, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	if (ddp_request_needs_even(&request, &gpus))
		slurm_info("slurm-ddp: Slurm may give one node more tasks than "
			   "another, and more than it has GPUs; add "
			   "--ntasks-per-node=%u", gpus);
	if (cpus == DDP_CPUS_ONE_A_RANK)
		slurm_info("slurm-ddp: one CPU a rank, and data loaders need "
			   "more; consider --cpus-per-task or --cpus-per-gpu");
}
