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
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "layout/port.h"
#include "layout/ranks.h"
#include "layout/scan.h"
#include "site.h"

#define BUILT_IN { .port_first = DDP_PORT_FIRST, .port_last = DDP_PORT_LAST }

struct ddp_plugin ddp_plugin = BUILT_IN;

enum option {
	OPTION_DDP, OPTION_PORT, OPTION_GPUS, OPTION_CPUS, OPTION_ENV,
	OPTION_SUPERVISE, OPTION_REPORT, OPTION_GRACE, OPTION_LOGS, OPTION_SHOW,
	OPTION_COUNT
};

static const char *const option_names[OPTION_COUNT + 1] = {
	[OPTION_DDP] = "--ddp",
	[OPTION_PORT] = "--ddp-port",
	[OPTION_GPUS] = "--ddp-gpus",
	[OPTION_CPUS] = "--ddp-cpus",
	[OPTION_ENV] = "--ddp-env",
	[OPTION_SUPERVISE] = "--ddp-supervise",
	[OPTION_REPORT] = "--ddp-report",
	[OPTION_GRACE] = "--ddp-grace",
	[OPTION_LOGS] = "--ddp-logs",
	[OPTION_SHOW] = "--ddp-show",
};

static struct {
	struct {
		char *value;		/* NULL: not typed */
		struct ddp_error error;	/* code 0: none */
	} typed[OPTION_COUNT];
	char *partition;		/* NULL: not known */
} said;

/* Parse words with commas in between; off must be the only one. */
static int parse_words(const char *text, struct ddp_plugin *plugin,
		       struct ddp_error *error)
{
	static const char *const words[] = {
		"explain", "dry-run", "torchrun", "on", "off", NULL,
	};
	bool given[5] = { false };
	char word[64];
	size_t length;
	int index;

	plugin->seen = plugin->on = true;
	if (!*text)		/* the site's default stands */
		return 0;
	for (; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		index = ddp_scan_word("--ddp", word, words, error);
		if (index < 0)
			return -1;
		given[index] = true;
	}
	if (given[4] && (given[0] || given[1] || given[2] || given[3]))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp: off is given with other words; "
				     "give it alone");
	plugin->explain = given[0];
	plugin->dry_run = given[1];
	plugin->torchrun = given[2];
	plugin->on = !given[4];
	return 0;
}

static int parse_port(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	uint64_t port;
	const char *at = text;

	if (ddp_scan_number(&at, 1024, 65535, &port) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-port=%.64s: not a port; give one "
				     "from 1024 to 65535", text);
	plugin->port = (uint16_t)port;
	return 0;
}

static int parse_gpus(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	int index = ddp_scan_word("--ddp-gpus", text, ddp_gpus_words, error);

	if (index >= 0)
		plugin->gpus = (enum ddp_gpus_policy)index;
	return index < 0 ? -1 : 0;
}

static int parse_cpus(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	int index = ddp_scan_word("--ddp-cpus", text, ddp_cpus_words, error);

	if (index >= 0)
		plugin->cpus = (enum ddp_cpus_policy)index;
	return index < 0 ? -1 : 0;
}

static int parse_env(const char *text, struct ddp_plugin *plugin,
		     struct ddp_error *error)
{
	static const char *const words[] = { "tf", NULL };

	plugin->tf = ddp_scan_word("--ddp-env", text, words, error) == 0;
	return plugin->tf ? 0 : -1;
}

static int parse_supervise(const char *text, struct ddp_plugin *plugin,
			   struct ddp_error *error)
{
	static const char *const words[] = { "on", "off", NULL };
	int index = ddp_scan_word("--ddp-supervise", text, words, error);

	plugin->unsupervised = index == 1;
	return index < 0 ? -1 : 0;
}

/* A path; where it is opened is a matter of who opens it. */
static int parse_report(const char *text, struct ddp_plugin *plugin,
			struct ddp_error *error)
{
	if (!*text)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--ddp-report: "
				     "names no file; give --ddp-report=FILE");
	plugin->report = text;
	return 0;
}

static int parse_grace(const char *text, struct ddp_plugin *plugin,
		       struct ddp_error *error)
{
	const char *at = text;
	uint64_t seconds;

	if (ddp_scan_number(&at, 1, DDP_SECONDS_MAX, &seconds) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-grace=%.64s: not a time; give "
				     "seconds from 1 to %d", text,
				     DDP_SECONDS_MAX);
	plugin->grace_s = (uint32_t)seconds;
	return 0;
}

/* A path; each task opens what is in it. */
static int parse_logs(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	if (!*text || strlen(text) > DDP_LOGS_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-logs=%.64s: not a folder's path; "
				     "give one of up to %d bytes", text,
				     DDP_LOGS_MAX);
	plugin->logs = text;
	return 0;
}

static int parse_show(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	if (ddp_ranks_check("--ddp-show", text, 0, error) < 0)
		return -1;
	plugin->show = text;
	return 0;
}

static int (*const parsers[OPTION_COUNT])(const char *, struct ddp_plugin *,
					  struct ddp_error *) = {
	[OPTION_DDP] = parse_words,
	[OPTION_PORT] = parse_port,
	[OPTION_GPUS] = parse_gpus,
	[OPTION_CPUS] = parse_cpus,
	[OPTION_ENV] = parse_env,
	[OPTION_SUPERVISE] = parse_supervise,
	[OPTION_REPORT] = parse_report,
	[OPTION_GRACE] = parse_grace,
	[OPTION_LOGS] = parse_logs,
	[OPTION_SHOW] = parse_show,
};

/* From weak to strong: what is set later replaces what was set before. */
static void settle(void)
{
	static const struct ddp_plugin built_in = BUILT_IN;
	int i;

	ddp_plugin = built_in;
	ddp_site_apply(&ddp_plugin, said.partition);
	for (i = 0; i < OPTION_COUNT; i++) {
		memset(&said.typed[i].error, 0, sizeof(said.typed[i].error));
		if (!said.typed[i].value)
			continue;
		if (i != OPTION_DDP)
			ddp_plugin.stray = option_names[i];
		parsers[i](said.typed[i].value, &ddp_plugin,
			   &said.typed[i].error);
	}
}

static int call_option(int val, const char *value, int remote)
{
	(void)remote;
	/*
	 * Slurm has three ways to pass "no value", depending on the context.
	 */
	if (!value || strcmp(value, "(null)") == 0)
		value = "";
	free(said.typed[val].value);
	said.typed[val].value = strdup(value);
	settle();
	return said.typed[val].value ? 0 : -1;
}

static struct spank_option options[OPTION_COUNT] = {
	[OPTION_DDP] = {
		.arginfo = "[explain|dry-run|torchrun|on|off]",
		.usage = "run the tasks as one data-parallel job: one task a "
			 "GPU, each near its own, with RANK, WORLD_SIZE, "
			 "MASTER_ADDR and the like set; explain says what was "
			 "chosen and why, dry-run does nothing else; torchrun "
			 "starts one task a node, whose command starts its "
			 "ranks; on does none of these; off undoes an "
			 "inherited --ddp",
		.has_arg = 2,
	},
	[OPTION_PORT] = {
		.arginfo = "PORT",
		.usage = "with --ddp: MASTER_PORT, instead of one chosen for "
			 "the step",
		.has_arg = 1,
	},
	[OPTION_GPUS] = {
		.arginfo = "all|own|share|off",
		.usage = "with --ddp: whether a task sees all GPUs of the step "
			 "on its node, with its own at LOCAL_RANK, or its own "
			 "alone; share: more tasks than GPUs are allowed; off: "
			 "leave GPUs as Slurm gave them",
		.has_arg = 1,
	},
	[OPTION_CPUS] = {
		.arginfo = "near|spread|off",
		.usage = "with --ddp: a task's CPUs are those near its GPU, "
			 "spread over the node, or as Slurm gave them",
		.has_arg = 1,
	},
	[OPTION_ENV] = {
		.arginfo = "tf",
		.usage = "with --ddp: more variables; tf: TF_CONFIG, by which "
			 "TensorFlow finds the ranks",
		.has_arg = 1,
	},
	[OPTION_SUPERVISE] = {
		.arginfo = "on|off",
		.usage = "with --ddp: off: no process of srun's watches over "
			 "the step; a failure is then Slurm's matter alone",
		.has_arg = 1,
	},
	[OPTION_REPORT] = {
		.arginfo = "FILE",
		.usage = "with --ddp: where a step fails, write which rank "
			 "failed first, and why, to FILE as JSON",
		.has_arg = 1,
	},
	[OPTION_GRACE] = {
		.arginfo = "SECONDS",
		.usage = "with --ddp: when a rank has failed, the others get "
			 "SIGTERM and this much time before they are killed",
		.has_arg = 1,
	},
	[OPTION_LOGS] = {
		.arginfo = "DIR",
		.usage = "with --ddp: a file for each rank's output and one "
			 "for its errors, in DIR/JOB.STEP; srun prints whole "
			 "lines, with [RANK NODE] in front",
		.has_arg = 1,
	},
	[OPTION_SHOW] = {
		.arginfo = "RANKS",
		.usage = "with --ddp: srun prints what these ranks (0,3-5) "
			 "print and no others, as whole lines with [RANK NODE] "
			 "in front",
		.has_arg = 1,
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

int ddp_options_set(const char *name, const char *value,
		    struct ddp_plugin *plugin, struct ddp_error *error)
{
	int i = ddp_scan_word("option", name, option_names, error);

	if (i < 0)
		return -1;
	return value ? parsers[i](value, plugin, error) : 0;
}

/* Whether a list with commas has this word. */
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

	for (i = 0; i < OPTION_COUNT; i++)
		if (said.typed[i].value && strlen(option_names[i]) == length &&
		    strncmp(option, option_names[i], length) == 0)
			return !option[length] ||
			       has_word(said.typed[i].value,
					option + length + 1);
	return false;
}

/* Not by a static table, which sbatch and salloc would not load. */
void ddp_options_register(spank_t spank)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++) {
		options[i].name = (char *)option_names[i] + strlen("--");
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

	for (i = 0; i < OPTION_COUNT; i++)
		if (said.typed[i].error.code)
			return said.typed[i].error.text;
	return ddp_site_error();
}

bool ddp_options_place(void)
{
	return ddp_plugin.gpus != DDP_GPUS_OFF ||
	       ddp_plugin.cpus != DDP_CPUS_OFF || ddp_plugin.explain ||
	       ddp_plugin.dry_run;
}
