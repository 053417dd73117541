/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of plugstack.conf's arguments: one table, and how each is read. */
#include "options/keys.h"

#include <ctype.h>
#include <string.h>

#include "layout/port.h"
#include "layout/vars.h"
#include "options/values.h"
#include "util/scan.h"

static int parse_ddp(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error)
{
	static const char *const words[] = { "on", "explain", NULL };
	int index = ddp_scan_word("ddp", value, words, error);

	plugin->explain = index == 1;
	return index < 0 ? -1 : 0;
}

static int parse_gpus(const char *value, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	return ddp_value_set("--ddp-gpus", value, plugin, error);
}

static int parse_cpus(const char *value, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	return ddp_value_set("--ddp-cpus", value, plugin, error);
}

/* A port for every step would be taken where two steps share a node. */
static int parse_port(const char *value, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	(void)value;
	(void)plugin;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "steps on one node "
			     "need different ports; give port-range=FIRST-"
			     "LAST");
}

static int parse_port_range(const char *value, struct ddp_plugin *plugin,
			    struct ddp_error *error)
{
	return ddp_port_range_parse(value, &plugin->port_first,
				    &plugin->port_last, error);
}

static int parse_mpi(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error)
{
	static const char *const words[] = { "pmix", "keep", NULL };
	int index = ddp_scan_word("mpi", value, words, error);

	plugin->mpi_keep = index == 1;
	return index < 0 ? -1 : 0;
}

static int parse_cpus_check(const char *value, struct ddp_plugin *plugin,
			    struct ddp_error *error)
{
	static const char *const words[] = { "check", "trust", NULL };
	int index = ddp_scan_word("cpus", value, words, error);

	plugin->cpus_trust = index == 1;
	return index < 0 ? -1 : 0;
}

/* Returns true if text is printable ASCII without blanks. */
static bool is_plain(const char *text)
{
	while (*text > ' ' && *text <= '~')
		text++;
	return !*text;
}

static int parse_interface(const char *value, struct ddp_plugin *plugin,
			   struct ddp_error *error)
{
	size_t length = strlen(value);

	if (!length || length >= sizeof(plugin->interface) ||
	    !is_plain(value) || strpbrk(value, ",=/^"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not one interface's name; give one, such "
				     "as ib0");
	memcpy(plugin->interface, value, length + 1);
	return 0;
}

static int parse_topology(const char *value, struct ddp_plugin *plugin,
			  struct ddp_error *error)
{
	if (*value != '/')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not the whole path of a file; begin it "
				     "with /");
	plugin->topology = value;
	return 0;
}

size_t ddp_keys_name_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return isdigit((unsigned char)*text) || text[length] != '=' ? 0 :
		length;
}

/*
 * Returns true if --ddp or Slurm sets this variable itself. A user may export
 * the two that are excepted, too, and they are the same for all tasks of a
 * site.
 */
static bool is_taken(const char *name)
{
	const struct ddp_var *var;
	size_t i;

	if (strcmp(name, "OMP_NUM_THREADS") == 0 ||
	    strcmp(name, "NCCL_SOCKET_IFNAME") == 0)
		return false;
	for (i = 0; (var = ddp_vars_get(i)); i++)
		if (strcmp(name, var->name) == 0)
			return true;
	return strncmp(name, "SLURM_", 6) == 0 || strncmp(name, "DDP_", 4) == 0;
}

static int parse_env(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error)
{
	size_t length = ddp_keys_name_length(value), i;
	char name[DDP_ENV_SIZE];

	if (!length || strlen(value) >= sizeof(name) || !is_plain(value))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not a variable; write env=NAME=VALUE, "
				     "shorter than %d", DDP_ENV_SIZE);
	memcpy(name, value, length);
	name[length] = '\0';
	if (is_taken(name))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "Slurm or --ddp sets %.64s itself, for "
				     "each step; leave it out", name);
	for (i = 0; i < plugin->env_count; i++)
		if (strncmp(plugin->env[i], value, length + 1) == 0)
			break;
	if (i == DDP_ENV_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "more than %d variables", DDP_ENV_MAX);
	plugin->env[i] = value;
	if (i == plugin->env_count)
		plugin->env_count++;
	return 0;
}

bool ddp_keys_item(const char **at, char *item, size_t size)
{
	size_t length = strcspn(*at, ",:");

	if (!**at || **at == ':')
		return false;
	if (length >= size)
		length = size - 1;
	memcpy(item, *at, length);
	item[length] = '\0';
	*at += strcspn(*at, ",:");
	*at += **at == ',';
	return true;
}

int ddp_keys_list(const char *list, char end, struct ddp_error *error)
{
	const char *at = list;
	char item[DDP_ITEM_SIZE] = "-";

	while (*item && ddp_keys_item(&at, item, sizeof(item)))
		;
	if (*at == end && *item && (at == list || at[-1] != ','))
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "not names with "
			     "commas between; write NAME,NAME");
}

static int parse_allow(const char *value, struct ddp_plugin *plugin,
		       struct ddp_error *error)
{
	if (*value == '-' || strstr(value, ",-"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "every option "
				     "is allowed; give partitions or @groups");
	plugin->allow = value;
	return ddp_keys_list(value, '\0', error);
}

/* "--NAME", or "--NAME=WORD" with a word that it can have. */
static int check_option(char *item, struct ddp_error *error)
{
	struct ddp_plugin scratch = { 0 };
	char *word = strchr(item, '=');

	if (word)
		*word++ = '\0';
	return ddp_value_set(item, word, &scratch, error);
}

static int parse_deny(const char *value, struct ddp_plugin *plugin,
		      struct ddp_error *error)
{
	const char *at = value;
	char item[DDP_ITEM_SIZE];

	plugin->deny = value;
	while (ddp_keys_item(&at, item, sizeof(item)))
		if (*item == '-' && check_option(item, error) < 0)
			return -1;
	return ddp_keys_list(value, '\0', error);
}

const struct ddp_key ddp_keys[DDP_KEY_COUNT] = {
	{ "ddp", parse_ddp, DDP_KEY_STEP },
	{ "ddp-gpus", parse_gpus, DDP_KEY_STEP },
	{ "ddp-cpus", parse_cpus, DDP_KEY_STEP },
	{ "ddp-port", parse_port, DDP_KEY_REFUSED },
	{ "port-range", parse_port_range, DDP_KEY_STEP },
	{ "interface", parse_interface, DDP_KEY_STEP },
	{ "env", parse_env, DDP_KEY_VARIABLE },
	{ "mpi", parse_mpi, DDP_KEY_STEP },
	{ "cpus", parse_cpus_check, DDP_KEY_OTHER },
	{ "topology", parse_topology, DDP_KEY_OTHER },
	{ "allow", parse_allow, DDP_KEY_WHO },
	{ "deny", parse_deny, DDP_KEY_WHO },
};
