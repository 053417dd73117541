/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options and plugstack.conf's arguments: one table each.
 *
 * An option can reach its callback twice, first as a job's environment has
 * it and then from the command line, and the later one replaces the earlier.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/port.h"
#include "plugin.h"

struct ddp_plugin ddp_plugin = {
	.port_first = DDP_PORT_FIRST,
	.port_last = DDP_PORT_LAST,
};

#define WORDS_KNOWN "off"
#define KEYS_KNOWN "mpi=pmix|keep, port-range=FIRST-LAST, interface=NAME, " \
	"cpus=check|trust"

/* Slurm writes "no value" in three ways, depending on the context. */
static const char *value_normal(const char *value)
{
	return !value || strcmp(value, "(null)") == 0 ? "" : value;
}

static int words_parse(const char *text)
{
	struct ddp_plugin *plugin = &ddp_plugin;

	plugin->seen = true;
	plugin->on = strcmp(text, "off") != 0;
	if (*text && plugin->on)
		return ddp_error_set(&plugin->bad_option, DDP_ERROR_ARGUMENT,
				     "--ddp=%.64s: unknown word; known are: "
				     WORDS_KNOWN, text);
	return 0;
}

static int ddp_callback(int val, const char *value, int remote)
{
	(void)val;
	(void)remote;
	memset(&ddp_plugin.bad_option, 0, sizeof(ddp_plugin.bad_option));
	words_parse(value_normal(value));
	return 0;
}

static struct ddp_error bad_port;

static int port_callback(int val, const char *value, int remote)
{
	char *end;
	long port;

	(void)val;
	(void)remote;
	value = value_normal(value);
	ddp_plugin.stray = "--ddp-port";
	memset(&bad_port, 0, sizeof(bad_port));
	port = strtol(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || port < 1024 ||
	    port > 65535)
		ddp_error_set(&bad_port, DDP_ERROR_ARGUMENT,
			      "--ddp-port=%s: must be a port from 1024 to "
			      "65535", value);
	else
		ddp_plugin.port = (uint16_t)port;
	return 0;
}

static struct spank_option options[] = {
	{
		.name = "ddp",
		.arginfo = "[off]",
		.usage = "run the tasks as one data-parallel job: one task a "
			 "GPU, with RANK, WORLD_SIZE, MASTER_ADDR and the "
			 "like set; off undoes an inherited --ddp",
		.has_arg = 2,
		.cb = ddp_callback,
	}, {
		.name = "ddp-port",
		.arginfo = "PORT",
		.usage = "with --ddp: MASTER_PORT, instead of one chosen for "
			 "the step",
		.has_arg = 1,
		.cb = port_callback,
	},
};

static int key_mpi(const char *value, struct ddp_error *error)
{
	(void)error;
	ddp_plugin.mpi_keep = strcmp(value, "keep") == 0;
	return ddp_plugin.mpi_keep || strcmp(value, "pmix") == 0 ? 0 : -1;
}

static int key_cpus(const char *value, struct ddp_error *error)
{
	(void)error;
	ddp_plugin.cpus_trust = strcmp(value, "trust") == 0;
	return ddp_plugin.cpus_trust || strcmp(value, "check") == 0 ? 0 : -1;
}

static int key_port_range(const char *value, struct ddp_error *error)
{
	return ddp_port_range_parse(value, &ddp_plugin.port_first,
				    &ddp_plugin.port_last, error);
}

static int key_interface(const char *value, struct ddp_error *error)
{
	size_t length = strlen(value);

	if (!length || length >= sizeof(ddp_plugin.interface) ||
	    strpbrk(value, " ,=/^"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "one interface's name is needed");
	memcpy(ddp_plugin.interface, value, length + 1);
	return 0;
}

static const struct {
	const char *name;
	int (*parse)(const char *value, struct ddp_error *error);
} keys[] = {
	{ "mpi", key_mpi },
	{ "port-range", key_port_range },
	{ "interface", key_interface },
	{ "cpus", key_cpus },
};

static int key_parse(const char *text)
{
	struct ddp_error why = { .text = "unknown; known are: " KEYS_KNOWN };
	size_t length = strcspn(text, "="), i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (text[length] == '=' && strlen(keys[i].name) == length &&
		    strncmp(text, keys[i].name, length) == 0 &&
		    keys[i].parse(text + length + 1, &why) == 0)
			return 0;
	return ddp_error_set(&ddp_plugin.bad_key, DDP_ERROR_ARGUMENT,
			     "plugstack.conf: spank_ddp.so: %s: %s", text,
			     why.text);
}

void ddp_options_read(int argc, char **argv)
{
	int arg;

	for (arg = 0; arg < argc && !ddp_plugin.bad_key.code; arg++)
		key_parse(argv[arg]);
}

/* Not a static table: sbatch and salloc would not load it. */
void ddp_options_register(spank_t spank)
{
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("slurm-ddp: cannot register --%s",
				    options[i].name);
}

const char *ddp_options_error(void)
{
	if (ddp_plugin.bad_option.code)
		return ddp_plugin.bad_option.text;
	if (bad_port.code)
		return bad_port.text;
	if (ddp_plugin.bad_key.code)
		return ddp_plugin.bad_key.text;
	return NULL;
}
