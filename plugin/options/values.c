/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the --ddp options, and how their values are read. */
#define _GNU_SOURCE
#include "options/plugin.h"

#include <stdio.h>
#include <string.h>

#include "layout/tasks.h"
#include "util/scan.h"

enum { CHECK_MIN_S = 2, CHECK_MAX_S = 3600 };	/* ddp-bench's --limit */

/* Words with commas in between; off must be the only one. */
static int parse_words(const struct ddp_option *option, const char *text,
		       struct ddp_plugin *plugin, struct ddp_error *error)
{
	static const char *const words[] = {
		"explain", "dry-run", "torchrun", "srun", "on", "off", "help",
		NULL,
	};
	bool given[7] = { false };
	char word[64];
	size_t length;
	int index;

	plugin->seen = plugin->on = true;
	if (!*text)		/* the site's default stands */
		return 0;
	for (; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		index = ddp_scan_word(option->name, word, words, error);
		if (index < 0)
			return -1;
		given[index] = true;
	}
	if (given[5] && (given[0] || given[1] || given[2] || given[3] ||
			 given[4]))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp: off is given with other words; "
				     "give it alone");
	if (given[2] && given[3])
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp: torchrun and srun are who starts "
				     "the ranks of a node; give one of them");
	plugin->explain = given[0];
	plugin->dry_run = given[1];
	plugin->torchrun = given[2];
	plugin->srun = given[3];
	plugin->on = !given[5];
	plugin->help = given[6];
	return 0;
}

static int parse_number(const struct ddp_option *option, const char *text,
			struct ddp_plugin *plugin, struct ddp_error *error)
{
	void *to = (char *)plugin + option->at;
	const char *at = text;
	uint64_t number = 0;

	if (!(option->can_be_off && strcmp(text, "off") == 0) &&
	    (ddp_scan_number(&at, option->min, option->max, &number) < 0 ||
	     *at))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s=%.64s: %s from %u to %u%s",
				     option->name, text, option->not_number,
				     option->min, option->max,
				     option->can_be_off ? ", or off" : "");
	if (option->size == sizeof(uint16_t))
		*(uint16_t *)to = (uint16_t)number;
	else
		*(uint32_t *)to = (uint32_t)number;
	return 0;
}

static int parse_choice(const struct ddp_option *option, const char *text,
			struct ddp_plugin *plugin, struct ddp_error *error)
{
	int index = ddp_scan_word(option->name, text, option->words, error);

	if (index >= 0)
		*(unsigned int *)((char *)plugin + option->at) =
			(unsigned int)index;
	return index < 0 ? -1 : 0;
}

static int parse_env(const struct ddp_option *option, const char *text,
		     struct ddp_plugin *plugin, struct ddp_error *error)
{
	static const char *const words[] = { "tf", NULL };

	plugin->tf = ddp_scan_word(option->name, text, words, error) == 0;
	return plugin->tf ? 0 : -1;
}

static int parse_supervise(const struct ddp_option *option, const char *text,
			   struct ddp_plugin *plugin, struct ddp_error *error)
{
	static const char *const words[] = { "on", "off", NULL };
	int index = ddp_scan_word(option->name, text, words, error);

	plugin->unsupervised = index == 1;
	return index < 0 ? -1 : 0;
}

/* A path; where it is opened is a matter of who opens it. */
static int parse_report(const struct ddp_option *option, const char *text,
			struct ddp_plugin *plugin, struct ddp_error *error)
{
	(void)option;
	if (!*text || *text == '-')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--ddp-report"
				     "%s%.64s: names no file; give "
				     "--ddp-report=FILE", *text ? "=" : "",
				     text);
	plugin->report = text;
	return 0;
}

/* A path; each task opens what is in it. */
static int parse_logs(const struct ddp_option *option, const char *text,
		      struct ddp_plugin *plugin, struct ddp_error *error)
{
	(void)option;
	if (!*text || *text == '-' || strlen(text) > DDP_LOGS_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-logs=%.64s: not a folder's path; "
				     "write --ddp-logs=FOLDER, of up to %d "
				     "bytes", text, DDP_LOGS_MAX);
	plugin->logs = text;
	return 0;
}

static int parse_show(const struct ddp_option *option, const char *text,
		      struct ddp_plugin *plugin, struct ddp_error *error)
{
	if (ddp_ranks_check(option->name, text, 0, error) < 0)
		return -1;
	plugin->show = text;
	return 0;
}

static int parse_signal(const struct ddp_option *option, const char *text,
			struct ddp_plugin *plugin, struct ddp_error *error)
{
	(void)option;
	return ddp_notice_parse(text, &plugin->notice, error);
}

static int parse_check(const struct ddp_option *option, const char *text,
		       struct ddp_plugin *plugin, struct ddp_error *error)
{
	const char *at = text;
	uint64_t seconds = 0;

	(void)option;
	if (*text && strcmp(text, "on") != 0 && strcmp(text, "off") != 0 &&
	    (ddp_scan_number(&at, CHECK_MIN_S, CHECK_MAX_S, &seconds) < 0 ||
	     *at))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-check=%.64s: not on, off or a "
				     "time; give seconds from %d to %d", text,
				     CHECK_MIN_S, CHECK_MAX_S);
	plugin->check = strcmp(text, "off") != 0;
	plugin->check_s = (uint32_t)seconds;
	return 0;
}

static const char *const order_words[] = { "slurm", "network", NULL };

#define AT(member) \
	.at = offsetof(struct ddp_plugin, member), \
	.size = sizeof(((struct ddp_plugin *)0)->member)
#define SECONDS(least) \
	.min = least, .max = DDP_SECONDS_MAX, \
	.not_number = "not a time; give seconds"
#define COUNT .max = DDP_RESTART_MAX, .not_number = "not a number"

const struct ddp_option ddp_option_table[DDP_OPTION_COUNT] = {
	{
		"--ddp", "[explain|dry-run|torchrun|srun|on|off|help]", 2, false,
		"run the tasks as one data-parallel job: one task a "
		"GPU, each near its own, with RANK, WORLD_SIZE, "
		"MASTER_ADDR and the like set; explain says what was "
		"chosen and why, dry-run does nothing else; torchrun "
		"starts one task a node, whose command starts its "
		"ranks, and srun one a GPU, whatever the command is; "
		"on does none of these; off undoes an inherited --ddp; "
		"help prints all options; manual: man slurm-ddp",
		.parse = parse_words,
	},
	{
		"--ddp-port", "PORT", 1, false,
		"with --ddp: MASTER_PORT, instead of one chosen for "
		"the step",
		.parse = parse_number,
		AT(port), .min = 1024, .max = 65535,
		.not_number = "not a port; give one",
	},
	{
		"--ddp-gpus", "all|own|share|off", 1, false,
		"with --ddp: whether a task sees all GPUs of the step "
		"on its node, with its own at LOCAL_RANK, or its own "
		"alone; share: more tasks than GPUs are allowed; off: "
		"leave GPUs as Slurm gave them",
		.parse = parse_choice, AT(gpus), .words = ddp_gpus_words,
	},
	{
		"--ddp-cpus", "near|spread|off", 1, false,
		"with --ddp: a task's CPUs are those near its GPU, "
		"spread over the node, or as Slurm gave them",
		.parse = parse_choice, AT(cpus), .words = ddp_cpus_words,
	},
	{
		"--ddp-order", "slurm|network", 1, false,
		"with --ddp, in a job: network: ranks follow the "
		"switches or blocks of the cluster, so that a ring "
		"through them leaves as few as possible",
		.parse = parse_choice, AT(order), .words = order_words,
	},
	{
		"--ddp-env", "tf", 1, false,
		"with --ddp: more variables; tf: TF_CONFIG, by which "
		"TensorFlow finds the ranks",
		.parse = parse_env,
	},
	{
		"--ddp-supervise", "on|off", 1, false,
		"with --ddp: off: no process of srun's watches over "
		"the step; a failure is then Slurm's matter alone",
		.parse = parse_supervise,
	},
	{
		"--ddp-report", "FILE", 1, true,
		"with --ddp: when the step has ended, write how to FILE "
		"as JSON, and which rank failed first, and why",
		.parse = parse_report,
	},
	{
		"--ddp-grace", "off|SECONDS", 1, true,
		"with --ddp: when a rank has failed, the others get "
		"SIGTERM and this much time before they are killed; off "
		"undoes a site's default",
		.parse = parse_number, AT(grace_s), SECONDS(1),
		.can_be_off = true,
	},
	{
		"--ddp-logs", "DIR", 1, true,
		"with --ddp: a file for each rank's output and one "
		"for its errors, in DIR/JOB.STEP; srun prints whole "
		"lines, with [RANK NODE] in front",
		.parse = parse_logs,
	},
	{
		"--ddp-show", "RANKS", 1, true,
		"with --ddp: srun prints what these ranks (0,3-5) "
		"print and no others, as whole lines with [RANK NODE] "
		"in front",
		.parse = parse_show,
	},
	{
		"--ddp-signal", "SIGNAL@SECONDS", 1, true,
		"with --ddp: send a signal, such as USR1@90, to the "
		"ranks, and to no process of theirs, this long before "
		"the job's end",
		.parse = parse_signal,
	},
	{
		"--ddp-restarts", "N", 1, true,
		"with --ddp, in sbatch or salloc: start a step that "
		"has failed again, up to N times",
		.parse = parse_number, AT(restarts), COUNT,
	},
	{
		"--ddp-spares", "K", 1, true,
		"with --ddp-restarts: keep K nodes of the job back, to "
		"take the place of those that are lost",
		.parse = parse_number, AT(spares), COUNT,
	},
	{
		"--ddp-watchdog", "off|SECONDS", 1, true,
		"with --ddp: a step in which no rank makes progress "
		"for this long is ended; who holds it up is named; off "
		"undoes a site's default",
		.parse = parse_number, AT(watchdog_s), SECONDS(5),
		.can_be_off = true,
	},
	{
		"--ddp-check", "[on|off|SECONDS]", 2, true,
		"with --ddp, in a job: before the command, check its "
		"nodes by ddp-bench --preflight; if one is not fit, "
		"say which and why, and take a spare instead, or do "
		"not start the command; SECONDS: wait so long for "
		"news of a rank",
		.parse = parse_check,
	},
};

int ddp_value_set(const char *name, const char *value,
		  struct ddp_plugin *plugin, struct ddp_error *error)
{
	const char *names[DDP_OPTION_COUNT + 1] = { NULL };
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++)
		names[i] = ddp_option_table[i].name;
	i = ddp_scan_word("option", name, names, error);
	if (i < 0)
		return -1;
	return value ? ddp_option_table[i].parse(&ddp_option_table[i], value,
						 plugin, error) : 0;
}
