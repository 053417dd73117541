/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the user wants of a supervisor, and starts it. */
#define _GNU_SOURCE
#include "srun/supervise.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "options/options.h"
#include "options/plugin.h"
#include "srun/again.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "supervisor/report.h"
#include "supervisor/supervisor.h"
#include "util/text.h"

enum { TELL_SIZE = 8 + DDP_PROOF_TEXT_SIZE };

/* SrunPortRange of slurm.conf: srun's own function, the same since 22.05. */
static void read_ports(struct ddp_supervisor *supervisor)
{
	uint16_t *(*get_range)(void), *range;

	*(void **)&get_range = dlsym(RTLD_DEFAULT, "slurm_get_srun_port_range");
	range = get_range ? get_range() : NULL;
	if (range && range[0] && range[0] <= range[1]) {
		supervisor->port_first = range[0];
		supervisor->port_last = range[1];
	}
}

/* If --ddp has filled --kill-on-bad-exit in, the user left it open. */
bool ddp_supervise_ends(void)
{
	const char *kill = ddp_cli_get("kill-on-bad-exit");

	return !kill || strcmp(kill, "0") != 0 ||
	       ddp_rerun_added("SLURM_KILL_BAD_EXIT");
}

bool ddp_supervise_alone(void)
{
	return ddp_plugin.grace_s || ddp_plugin.notice.number;
}

/* Returns the option that leaves the supervisor out, or NULL: --async waits for
 * no step. */
static const char *find_without(void)
{
	return ddp_plugin.unsupervised ? "--ddp-supervise=off" :
		ddp_cli_isset("async") ? "--async" : NULL;
}

/*
 * Options that need a supervisor, or that another takes the sense from. A dry
 * run writes no report, but is there to tell what cannot be.
 */
static void check(void)
{
	bool kill_given = ddp_cli_get("kill-on-bad-exit") &&
			  !ddp_rerun_added("SLURM_KILL_BAD_EXIT");
	const char *needs = ddp_options_need(), *without = find_without();
	struct ddp_error error;

	if (without && needs)
		ddp_srun_refuse("%s: needs the supervisor; leave out %s",
				needs, without);
	if (ddp_plugin.grace_s && kill_given)
		ddp_srun_refuse("--ddp-grace: is given with "
				"--kill-on-bad-exit, or SLURM_KILL_BAD_EXIT, "
				"by which Slurm ends all at once, or nobody "
				"does; leave out one of them");
	if (ddp_plugin.dry_run && ddp_plugin.report &&
	    ddp_report_check(ddp_plugin.report, &error) < 0)
		ddp_srun_refuse("%s", error.text);
}

static void tell_tasks(const struct ddp_supervisor *supervisor,
		       const struct ddp_secret *secret)
{
	char digits[DDP_PROOF_TEXT_SIZE], text[TELL_SIZE];

	ddp_proof_format(secret, digits);
	snprintf(text, sizeof(text), "%u:%s", supervisor->port, digits);
	ddp_rerun_add(DDP_TELL_SUPERVISOR, text);
}

/*
 * Says that the step runs unwatched, or refuses it for an option that needs a
 * supervisor. The srun of a check needs none: it tells by itself what fails.
 */
static void go_without(struct ddp_error *error)
{
	const char *needs = ddp_options_need();

	if (ddp_srun.checks)
		return;
	if (needs)
		ddp_srun_refuse("%s: needs the supervisor, which cannot run "
				"here: %s", needs, error->text);
	slurm_info("slurm-ddp: nobody watches this step, as the supervisor "
		   "cannot run here: %s", ddp_text_quote(error->text));
}

bool ddp_supervise(void)
{
	struct ddp_supervisor supervisor = {
		.pty = ddp_cli_isset("pty"),
		.quiet = ddp_cli_isset("quiet"),
		.kill = ddp_supervise_ends(),
		.alone = ddp_rerun_added("SLURM_KILL_BAD_EXIT") &&
			 ddp_supervise_alone(),
		.own_job = !ddp_cli_get("jobid") && !getenv("SLURM_JOB_ID"),
		.grace_s = ddp_plugin.grace_s,
		.watchdog_s = ddp_plugin.watchdog_s,
		.launcher = ddp_srun.launcher,
		.report = ddp_plugin.report,
		.notice = ddp_plugin.notice,
	};
	struct ddp_secret secret;
	struct ddp_error error;
	int rc;

	check();
	if (find_without() || ddp_plugin.dry_run || ddp_srun.supervised)
		return false;
	/* These are for the command that comes after the check. */
	if (ddp_srun.checks) {
		supervisor.grace_s = 0;
		supervisor.watchdog_s = 0;
		supervisor.report = NULL;
		supervisor.notice.number = 0;
	}
	read_ports(&supervisor);
	rc = ddp_supervisor_open(&supervisor, &error);
	if (rc < 0)
		ddp_srun_refuse("%s", error.text);
	if (rc > 0) {
		go_without(&error);
		return false;
	}
	ddp_output_drop();
	if (!ddp_srun.checks)
		ddp_again_read(&supervisor.restart);
	if (ddp_supervisor_run(&supervisor, &secret) < 0)
		ddp_srun_refuse("cannot start srun: %s", strerror(errno));
	tell_tasks(&supervisor, &secret);
	ddp_again_tell(&supervisor.restart);
	ddp_srun.supervised = getppid();
	return true;
}
