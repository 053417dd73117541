/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options and plugstack.conf's arguments: a table for each. In
 * slurmstepd this runs as root, on options that the user typed: it parses words
 * and numbers and does nothing else.
 *
 * An option can reach its callback twice: first from a job's environment, then
 * from the command line. The later value replaces the earlier one.
 */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/port.h"
#include "layout/scan.h"
#include "plugin.h"

struct ddp_plugin ddp_plugin = {
	.port_first = DDP_PORT_FIRST,
	.port_last = DDP_PORT_LAST,
};

#define KEYS_KNOWN "mpi=pmix|keep, port-range=FIRST-LAST, interface=NAME, " \
	"cpus=check|trust, topology=FILE"

enum option { OPTION_DDP, OPTION_PORT, OPTION_GPUS, OPTION_CPUS, OPTION_COUNT };

/* The first error of each; code 0 where there is none. */
static struct {
	struct ddp_error options[OPTION_COUNT];
	struct ddp_error key;
} bad;

/* Parse words with commas in between; off must be the only one. */
static int parse_words(const char *text, struct ddp_error *error)
{
	static const char *const words[] = {
		"explain", "dry-run", "off", NULL,
	};
	struct ddp_plugin *plugin = &ddp_plugin;
	bool off = false;
	char word[64];
	size_t length;

	plugin->seen = plugin->on = true;
	plugin->explain = plugin->dry_run = false;
	for (; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		switch (ddp_scan_word("--ddp", word, words, error)) {
		case 0: plugin->explain = true; break;
		case 1: plugin->dry_run = true; break;
		case 2: off = true; break;
		default: return -1;
		}
	}
	if (off && (plugin->explain || plugin->dry_run))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp: off is given with other words; "
				     "give it alone");
	plugin->on = !off;
	return 0;
}

static int parse_port(const char *text, struct ddp_error *error)
{
	uint64_t port;
	const char *at = text;

	ddp_plugin.stray = "--ddp-port";
	if (ddp_scan_number(&at, 1024, 65535, &port) < 0 || *at)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "--ddp-port=%.64s: not a port; give one "
				     "from 1024 to 65535", text);
	ddp_plugin.port = (uint16_t)port;
	return 0;
}

static int parse_gpus(const char *text, struct ddp_error *error)
{
	int index = ddp_scan_word("--ddp-gpus", text, ddp_gpus_words, error);

	ddp_plugin.stray = "--ddp-gpus";
	if (index >= 0)
		ddp_plugin.gpus = (enum ddp_gpus_policy)index;
	return index < 0 ? -1 : 0;
}

static int parse_cpus(const char *text, struct ddp_error *error)
{
	int index = ddp_scan_word("--ddp-cpus", text, ddp_cpus_words, error);

	ddp_plugin.stray = "--ddp-cpus";
	if (index >= 0)
		ddp_plugin.cpus = (enum ddp_cpus_policy)index;
	return index < 0 ? -1 : 0;
}

static int (*const parsers[OPTION_COUNT])(const char *, struct ddp_error *) = {
	[OPTION_DDP] = parse_words,
	[OPTION_PORT] = parse_port,
	[OPTION_GPUS] = parse_gpus,
	[OPTION_CPUS] = parse_cpus,
};

static int call_option(int val, const char *value, int remote)
{
	(void)remote;
	/*
	 * Slurm has three ways to pass "no value", depending on the context.
	 */
	if (!value || strcmp(value, "(null)") == 0)
		value = "";
	memset(&bad.options[val], 0, sizeof(bad.options[val]));
	parsers[val](value, &bad.options[val]);
	return 0;
}

static struct spank_option options[OPTION_COUNT] = {
	[OPTION_DDP] = {
		.name = "ddp",
		.arginfo = "[explain|dry-run|off]",
		.usage = "run the tasks as one data-parallel job: one task a "
			 "GPU, each near its own, with RANK, WORLD_SIZE, "
			 "MASTER_ADDR and the like set; explain says what was "
			 "chosen and why, dry-run does nothing else; off "
			 "undoes an inherited --ddp",
		.has_arg = 2,
	},
	[OPTION_PORT] = {
		.name = "ddp-port",
		.arginfo = "PORT",
		.usage = "with --ddp: MASTER_PORT, instead of one chosen for "
			 "the step",
		.has_arg = 1,
	},
	[OPTION_GPUS] = {
		.name = "ddp-gpus",
		.arginfo = "all|own|share|off",
		.usage = "with --ddp: whether a task sees all GPUs of the step "
			 "on its node, with its own at LOCAL_RANK, or its own "
			 "alone; share: more tasks than GPUs are allowed; off: "
			 "leave GPUs as Slurm gave them",
		.has_arg = 1,
	},
	[OPTION_CPUS] = {
		.name = "ddp-cpus",
		.arginfo = "near|spread|off",
		.usage = "with --ddp: a task's CPUs are those near its GPU, "
			 "spread over the node, or as Slurm gave them",
		.has_arg = 1,
	},
};

static int parse_mpi_key(const char *value, struct ddp_error *error)
{
	(void)error;
	ddp_plugin.mpi_keep = strcmp(value, "keep") == 0;
	return ddp_plugin.mpi_keep || strcmp(value, "pmix") == 0 ? 0 : -1;
}

static int parse_cpus_key(const char *value, struct ddp_error *error)
{
	(void)error;
	ddp_plugin.cpus_trust = strcmp(value, "trust") == 0;
	return ddp_plugin.cpus_trust || strcmp(value, "check") == 0 ? 0 : -1;
}

static int parse_port_range_key(const char *value, struct ddp_error *error)
{
	return ddp_port_range_parse(value, &ddp_plugin.port_first,
				    &ddp_plugin.port_last, error);
}

static int parse_interface_key(const char *value, struct ddp_error *error)
{
	size_t length = strlen(value), i;
	bool printable = true;

	for (i = 0; i < length; i++)
		printable = printable && value[i] > ' ' && value[i] <= '~';
	if (!length || length >= sizeof(ddp_plugin.interface) || !printable ||
	    strpbrk(value, ",=/^"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not one interface's name; give one, such "
				     "as ib0");
	memcpy(ddp_plugin.interface, value, length + 1);
	return 0;
}

static int parse_topology_key(const char *value, struct ddp_error *error)
{
	if (*value != '/')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not the whole path of a file; begin it "
				     "with /");
	free((char *)ddp_plugin.topology);
	ddp_plugin.topology = strdup(value);
	return ddp_plugin.topology ? 0 :
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
}

static const struct {
	const char *name;
	int (*parse)(const char *value, struct ddp_error *error);
} keys[] = {
	{ "mpi", parse_mpi_key },
	{ "port-range", parse_port_range_key },
	{ "interface", parse_interface_key },
	{ "cpus", parse_cpus_key },
	{ "topology", parse_topology_key },
};

static int parse_key(const char *text)
{
	struct ddp_error why = { .text = "unknown; known are: " KEYS_KNOWN };
	size_t length = strcspn(text, "="), i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (text[length] == '=' && strlen(keys[i].name) == length &&
		    strncmp(text, keys[i].name, length) == 0 &&
		    keys[i].parse(text + length + 1, &why) == 0)
			return 0;
	return ddp_error_set(&bad.key, DDP_ERROR_ARGUMENT,
			     "plugstack.conf: spank_ddp.so: %.128s: %s", text,
			     why.text);
}

void ddp_options_read(int argc, char **argv)
{
	int arg;

	for (arg = 0; arg < argc && !bad.key.code; arg++)
		parse_key(argv[arg]);
}

/* Not by a static table, which sbatch and salloc would not load. */
void ddp_options_register(spank_t spank)
{
	int i;

	for (i = 0; i < OPTION_COUNT; i++) {
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
		if (bad.options[i].code)
			return bad.options[i].text;
	return bad.key.code ? bad.key.text : NULL;
}

bool ddp_options_place(void)
{
	return ddp_plugin.gpus != DDP_GPUS_OFF ||
	       ddp_plugin.cpus != DDP_CPUS_OFF || ddp_plugin.explain ||
	       ddp_plugin.dry_run;
}
