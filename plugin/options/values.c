/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the values of the --ddp options. */
#define _GNU_SOURCE
#include "options/values.h"

#include <stdio.h>
#include <string.h>

#include "layout/ranks.h"
#include "util/scan.h"

enum { CHECK_MIN_S = 2, CHECK_MAX_S = 3600 };	/* ddp-bench's --limit */

const char *const ddp_option_names[DDP_OPTION_COUNT + 1] = {
	[DDP_OPTION_DDP] = "--ddp",
	[DDP_OPTION_PORT] = "--ddp-port",
	[DDP_OPTION_GPUS] = "--ddp-gpus",
	[DDP_OPTION_CPUS] = "--ddp-cpus",
	[DDP_OPTION_ENV] = "--ddp-env",
	[DDP_OPTION_SUPERVISE] = "--ddp-supervise",
	[DDP_OPTION_REPORT] = "--ddp-report",
	[DDP_OPTION_GRACE] = "--ddp-grace",
	[DDP_OPTION_LOGS] = "--ddp-logs",
	[DDP_OPTION_SHOW] = "--ddp-show",
	[DDP_OPTION_SIGNAL] = "--ddp-signal",
	[DDP_OPTION_RESTARTS] = "--ddp-restarts",
	[DDP_OPTION_SPARES] = "--ddp-spares",
	[DDP_OPTION_WATCHDOG] = "--ddp-watchdog",
	[DDP_OPTION_CHECK] = "--ddp-check",
};

/* Parse words with commas in between; off must be the only one. */
static int parse_words(const char *text, struct ddp_plugin *plugin,
		       struct ddp_error *error)
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
		index = ddp_scan_word("--ddp", word, words, error);
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
	if (!*text || *text == '-')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--ddp-report"
				     "%s%.64s: names no file; give "
				     "--ddp-report=FILE", *text ? "=" : "",
				     text);
	plugin->report = text;
	return 0;
}

static int parse_seconds(const char *name, const char *text, uint32_t from,
			 uint32_t *seconds, struct ddp_error *error)
{
	const char *at = text;
	uint64_t number;

	if (ddp_scan_number(&at, from, DDP_SECONDS_MAX, &number) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s=%.64s: not a time; give seconds from "
				     "%u to %d", name, text, from,
				     DDP_SECONDS_MAX);
	*seconds = (uint32_t)number;
	return 0;
}

static int parse_grace(const char *text, struct ddp_plugin *plugin,
		       struct ddp_error *error)
{
	return parse_seconds("--ddp-grace", text, 1, &plugin->grace_s, error);
}

/* Samples are a second apart: fewer than five prove nothing. */
static int parse_watchdog(const char *text, struct ddp_plugin *plugin,
			  struct ddp_error *error)
{
	return parse_seconds("--ddp-watchdog", text, 5, &plugin->watchdog_s,
			     error);
}

/* A path; each task opens what is in it. */
static int parse_logs(const char *text, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	if (!*text || *text == '-' || strlen(text) > DDP_LOGS_MAX)
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

static int parse_signal(const char *text, struct ddp_plugin *plugin,
			struct ddp_error *error)
{
	return ddp_notice_parse(text, &plugin->notice, error);
}

static int parse_count(const char *name, const char *text, uint32_t *count,
		       struct ddp_error *error)
{
	const char *at = text;
	uint64_t number;

	if (ddp_scan_number(&at, 0, DDP_RESTART_MAX, &number) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s=%.64s: not a number from 0 to %d", name,
				     text, DDP_RESTART_MAX);
	*count = (uint32_t)number;
	return 0;
}

static int parse_restarts(const char *text, struct ddp_plugin *plugin,
			  struct ddp_error *error)
{
	return parse_count("--ddp-restarts", text, &plugin->restarts, error);
}

static int parse_spares(const char *text, struct ddp_plugin *plugin,
			struct ddp_error *error)
{
	return parse_count("--ddp-spares", text, &plugin->spares, error);
}

static int parse_check(const char *text, struct ddp_plugin *plugin,
		       struct ddp_error *error)
{
	const char *at = text;
	uint64_t seconds = 0;

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

static int (*const parsers[DDP_OPTION_COUNT])(const char *, struct ddp_plugin *,
					  struct ddp_error *) = {
	[DDP_OPTION_DDP] = parse_words,
	[DDP_OPTION_PORT] = parse_port,
	[DDP_OPTION_GPUS] = parse_gpus,
	[DDP_OPTION_CPUS] = parse_cpus,
	[DDP_OPTION_ENV] = parse_env,
	[DDP_OPTION_SUPERVISE] = parse_supervise,
	[DDP_OPTION_REPORT] = parse_report,
	[DDP_OPTION_GRACE] = parse_grace,
	[DDP_OPTION_LOGS] = parse_logs,
	[DDP_OPTION_SHOW] = parse_show,
	[DDP_OPTION_SIGNAL] = parse_signal,
	[DDP_OPTION_RESTARTS] = parse_restarts,
	[DDP_OPTION_SPARES] = parse_spares,
	[DDP_OPTION_WATCHDOG] = parse_watchdog,
	[DDP_OPTION_CHECK] = parse_check,
};

int ddp_value_parse(enum ddp_option option, const char *text,
		    struct ddp_plugin *plugin, struct ddp_error *error)
{
	return parsers[option](text, plugin, error);
}

int ddp_value_set(const char *name, const char *value,
		  struct ddp_plugin *plugin, struct ddp_error *error)
{
	int i = ddp_scan_word("option", name, ddp_option_names, error);

	if (i < 0)
		return -1;
	return value ? ddp_value_parse(i, value, plugin, error) : 0;
}
