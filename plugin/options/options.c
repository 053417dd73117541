/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options, and what holds in the end. In slurmstepd this runs as
 * root, on options that the user typed: it parses words and numbers and does
 * nothing else.
 *
 * An option can reach its callback twice: first from a job's environment, then
 * from the command line. The later value replaces the earlier one.
 */
#define _GNU_SOURCE
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

#include "layout/port.h"
#include "options/keys.h"
#include "options/site.h"
#include "options/values.h"

struct ddp_plugin ddp_plugin = DDP_BUILT_IN;

static struct {
	struct {
		char *value;		/* NULL: not typed */
		struct ddp_error error;	/* code 0: none */
	} typed[DDP_OPTION_COUNT];
	char *partition;		/* NULL: not known */
} said;

/*
 * Sets ddp_plugin from weak to strong: what is built in, the site's defaults,
 * what was typed. The later value replaces the earlier one.
 */
static void settle(void)
{
	static const struct ddp_plugin built_in = DDP_BUILT_IN;
	int i;

	ddp_plugin = built_in;
	ddp_site_apply(&ddp_plugin, said.partition);
	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		memset(&said.typed[i].error, 0, sizeof(said.typed[i].error));
		if (!said.typed[i].value)
			continue;
		if (i != DDP_OPTION_DDP)
			ddp_plugin.stray = ddp_option_names[i];
		ddp_value_parse(i, said.typed[i].value, &ddp_plugin,
				&said.typed[i].error);
	}
}

void (*ddp_options_help)(void);

static int call_option(int val, const char *value, int remote)
{
	/*
	 * Slurm has three ways to pass "no value", depending on the context.
	 */
	if (!value || strcmp(value, "(null)") == 0)
		value = "";
	free(said.typed[val].value);
	said.typed[val].value = strdup(value);
	settle();
	/* Now, as srun refuses a command line without a command later. */
	if (!remote && ddp_plugin.help && ddp_options_help)
		ddp_options_help();
	return said.typed[val].value ? 0 : -1;
}

static struct spank_option options[DDP_OPTION_COUNT] = {
	[DDP_OPTION_DDP] = {
		.arginfo = "[explain|dry-run|torchrun|srun|on|off|help]",
		.usage = "run the tasks as one data-parallel job: one task a "
			 "GPU, each near its own, with RANK, WORLD_SIZE, "
			 "MASTER_ADDR and the like set; explain says what was "
			 "chosen and why, dry-run does nothing else; torchrun "
			 "starts one task a node, whose command starts its "
			 "ranks, and srun one a GPU, whatever the command is; "
			 "on does none of these; off undoes an inherited --ddp; "
			 "help prints all options; manual: man slurm-ddp",
		.has_arg = 2,
	},
	[DDP_OPTION_PORT] = {
		.arginfo = "PORT",
		.usage = "with --ddp: MASTER_PORT, instead of one chosen for "
			 "the step",
		.has_arg = 1,
	},
	[DDP_OPTION_GPUS] = {
		.arginfo = "all|own|share|off",
		.usage = "with --ddp: whether a task sees all GPUs of the step "
			 "on its node, with its own at LOCAL_RANK, or its own "
			 "alone; share: more tasks than GPUs are allowed; off: "
			 "leave GPUs as Slurm gave them",
		.has_arg = 1,
	},
	[DDP_OPTION_CPUS] = {
		.arginfo = "near|spread|off",
		.usage = "with --ddp: a task's CPUs are those near its GPU, "
			 "spread over the node, or as Slurm gave them",
		.has_arg = 1,
	},
	[DDP_OPTION_ENV] = {
		.arginfo = "tf",
		.usage = "with --ddp: more variables; tf: TF_CONFIG, by which "
			 "TensorFlow finds the ranks",
		.has_arg = 1,
	},
	[DDP_OPTION_SUPERVISE] = {
		.arginfo = "on|off",
		.usage = "with --ddp: off: no process of srun's watches over "
			 "the step; a failure is then Slurm's matter alone",
		.has_arg = 1,
	},
	[DDP_OPTION_REPORT] = {
		.arginfo = "FILE",
		.usage = "with --ddp: where a step fails, write which rank "
			 "failed first, and why, to FILE as JSON",
		.has_arg = 1,
	},
	[DDP_OPTION_GRACE] = {
		.arginfo = "SECONDS",
		.usage = "with --ddp: when a rank has failed, the others get "
			 "SIGTERM and this much time before they are killed",
		.has_arg = 1,
	},
	[DDP_OPTION_LOGS] = {
		.arginfo = "DIR",
		.usage = "with --ddp: a file for each rank's output and one "
			 "for its errors, in DIR/JOB.STEP; srun prints whole "
			 "lines, with [RANK NODE] in front",
		.has_arg = 1,
	},
	[DDP_OPTION_SHOW] = {
		.arginfo = "RANKS",
		.usage = "with --ddp: srun prints what these ranks (0,3-5) "
			 "print and no others, as whole lines with [RANK NODE] "
			 "in front",
		.has_arg = 1,
	},
	[DDP_OPTION_SIGNAL] = {
		.arginfo = "SIGNAL@SECONDS",
		.usage = "with --ddp: send a signal, such as USR1@90, to the "
			 "ranks, and to no process of theirs, this long before "
			 "the job's end",
		.has_arg = 1,
	},
	[DDP_OPTION_RESTARTS] = {
		.arginfo = "N",
		.usage = "with --ddp, in sbatch or salloc: start a step that "
			 "has failed again, up to N times",
		.has_arg = 1,
	},
	[DDP_OPTION_SPARES] = {
		.arginfo = "K",
		.usage = "with --ddp-restarts: keep K nodes of the job back, to "
			 "take the place of those that are lost",
		.has_arg = 1,
	},
	[DDP_OPTION_WATCHDOG] = {
		.arginfo = "SECONDS",
		.usage = "with --ddp: a step in which no rank makes progress "
			 "for this long is ended; who holds it up is named",
		.has_arg = 1,
	},
	[DDP_OPTION_CHECK] = {
		.arginfo = "[on|off|SECONDS]",
		.usage = "with --ddp, in a job: before the command, check its "
			 "nodes by ddp-bench --preflight; if one is not fit, "
			 "say which and why, and take a spare instead, or do "
			 "not start the command; SECONDS: wait so long for "
			 "news of a rank",
		.has_arg = 2,
	},
};

void ddp_options_read(int argc, char **argv)
{
	ddp_site_read(argc, argv);
	settle();
}

void ddp_options_partition(const char *name)
{
	free(said.partition);
	said.partition = name ? strdup(name) : NULL;
	settle();
}

const char *ddp_options_site(size_t index)
{
	return ddp_site_default(index, said.partition);
}

/* Returns true if a list with commas has this word. */
static bool has_word(const char *list, const char *word)
{
	char item[DDP_ITEM_SIZE];

	while (ddp_keys_item(&list, item, sizeof(item)))
		if (strcmp(item, word) == 0)
			return true;
	return false;
}

bool ddp_options_typed(const char *option)
{
	size_t length = strcspn(option, "=");
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++)
		if (said.typed[i].value && strlen(ddp_option_names[i]) == length &&
		    strncmp(option, ddp_option_names[i], length) == 0)
			return !option[length] ||
			       has_word(said.typed[i].value,
					option + length + 1);
	return false;
}

/* sbatch and salloc would not load a static table of options. */
void ddp_options_register(spank_t spank)
{
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		options[i].name = (char *)ddp_option_names[i] + strlen("--");
		options[i].val = i;
		options[i].cb = call_option;
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("slurm-ddp: cannot register --%s",
				    options[i].name);
	}
}

const char *ddp_options_error(void)
{
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++)
		if (said.typed[i].error.code)
			return said.typed[i].error.text;
	return ddp_site_error();
}

const char *ddp_options_need(void)
{
	return ddp_plugin.report ? "--ddp-report" :
		ddp_plugin.grace_s ? "--ddp-grace" :
		ddp_plugin.notice.number ? "--ddp-signal" :
		ddp_plugin.watchdog_s ? "--ddp-watchdog" :
		ddp_plugin.restarts ? "--ddp-restarts" : NULL;
}

bool ddp_options_place(void)
{
	return ddp_plugin.gpus != DDP_GPUS_OFF ||
	       ddp_plugin.cpus != DDP_CPUS_OFF || ddp_plugin.explain ||
	       ddp_plugin.dry_run;
}
