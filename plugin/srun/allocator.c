/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the options of sbatch and salloc, and tells srun what it cannot ask
 * Slurm.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

#include "options/options.h"
#include "options/plugin.h"
#include "srun/check.h"
#include "srun/cli.h"
#include "srun/help.h"
#include "srun/outer.h"
#include "srun/policy.h"
#include "srun/srun.h"

void ddp_allocator_init(void)
{
	ddp_options_help = ddp_help_print;
	ddp_outer_remove();
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
}
