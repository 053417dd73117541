/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of plugstack.conf: their keys, in one table, and how each is
 * read; for whom each is, and which of them hold.
 */
#define _GNU_SOURCE
#include "options/site.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "layout/port_range.h"
#include "layout/vars.h"
#include "util/scan.h"

/* ---- keys */

enum kind {
	KEY_STEP,		/* a default for steps */
	KEY_VARIABLE,		/* the same, one for each variable */
	KEY_WHO,		/* partitions and others, in a list */
	KEY_OTHER,
	KEY_REFUSED		/* with a reason of its own; never offered */
};

/*
 * parse sets what a value says, or returns -1 with the reason. It keeps the
 * value, not a copy. NULL: as the option of this name does.
 */
struct key {
	const char *name;
	int (*parse)(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error);
	enum kind kind;
};

static int parse_ddp(const char *value, struct ddp_plugin *plugin,
		     struct ddp_error *error)
{
	static const char *const words[] = { "on", "explain", NULL };
	int index = ddp_scan_word("ddp", value, words, error);

	plugin->explain = index == 1;
	return index < 0 ? -1 : 0;
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

/* A host's name, with %n once and no other %. */
static int parse_master(const char *value, struct ddp_plugin *plugin,
			struct ddp_error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char *at = strstr(value, "%n");
	size_t begin = strspn(value, letters);

	if (!at || at != value + begin || strlen(value) > DDP_MASTER_MAX ||
	    at[2 + strspn(at + 2, letters)])
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "not a host's name with %%n, the name of "
				     "rank 0's node, in it; write master=%%n-ib");
	plugin->master = value;
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

/* The length of the name in "NAME=VALUE"; 0 where that is no variable's. */
static size_t name_length(const char *text)
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
	size_t length = name_length(value), i;
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

bool ddp_site_item(const char **at, char *item, size_t size)
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

/*
 * Checks that a list goes up to the character end and has no empty item; it may
 * have no item at all. Returns 0, or -1 with the reason.
 */
static int check_list(const char *list, char end, struct ddp_error *error)
{
	const char *at = list;
	char item[DDP_ITEM_SIZE] = "-";

	while (*item && ddp_site_item(&at, item, sizeof(item)))
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
	return check_list(value, '\0', error);
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
	while (ddp_site_item(&at, item, sizeof(item)))
		if (*item == '-' && check_option(item, error) < 0)
			return -1;
	return check_list(value, '\0', error);
}

static const struct key keys[] = {
	{ "ddp", parse_ddp, KEY_STEP },
	{ "ddp-gpus", NULL, KEY_STEP },
	{ "ddp-cpus", NULL, KEY_STEP },
	{ "ddp-order", NULL, KEY_STEP },
	{ "ddp-watchdog", NULL, KEY_STEP },
	{ "ddp-grace", NULL, KEY_STEP },
	{ "ddp-restarts", NULL, KEY_STEP },
	{ "ddp-check", NULL, KEY_STEP },
	{ "ddp-port", parse_port, KEY_REFUSED },
	{ "port-range", parse_port_range, KEY_STEP },
	{ "interface", parse_interface, KEY_STEP },
	{ "master", parse_master, KEY_STEP },
	{ "env", parse_env, KEY_VARIABLE },
	{ "mpi", parse_mpi, KEY_STEP },
	{ "cpus", parse_cpus_check, KEY_OTHER },
	{ "topology", parse_topology, KEY_OTHER },
	{ "allow", parse_allow, KEY_WHO },
	{ "deny", parse_deny, KEY_WHO },
};

/* ---- arguments */

enum { ARGUMENTS_MAX = 256, KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

static struct {
	struct argument {
		const struct key *key;
		const char *text, *value;	/* "KEY=VALUE"; VALUE */
		const char *partitions;		/* up to ':'; NULL: all */
	} arguments[ARGUMENTS_MAX];
	size_t count;
	struct ddp_plugin all;		/* what all of them say, at once */
	struct ddp_error error;		/* the first; code 0: none */
} site;

static int parse_value(const struct key *key, const char *value,
		       struct ddp_plugin *plugin, struct ddp_error *error)
{
	char option[64];

	if (key->parse)
		return key->parse(value, plugin, error);
	snprintf(option, sizeof(option), "--%s", key->name);
	return ddp_value_set(option, value, plugin, error);
}

/* partition=NAMES:REST; sets *names and returns REST, or text itself. */
static const char *skip_partitions(const char *text, const char **names,
				   struct ddp_error *error)
{
	static const char prefix[] = "partition=";
	size_t length = strlen(prefix);

	*names = NULL;
	if (strncmp(text, prefix, length) != 0)
		return text;
	*names = text + length;
	if (**names != ':' && check_list(*names, ':', NULL) == 0)
		return strchr(*names, ':') + 1;
	ddp_error_set(error, DDP_ERROR_ARGUMENT,
		      "not for a partition; write partition=NAME:KEY=VALUE");
	return NULL;
}

static const struct key *find_key(const char *text, struct ddp_error *error)
{
	const char *offered[KEY_COUNT + 2] = { NULL };
	const struct key *found = NULL;
	size_t count = 0, i;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	for (i = 0; i < KEY_COUNT; i++) {
		if (strcmp(keys[i].name, name) == 0)
			found = &keys[i];
		if (keys[i].kind != KEY_REFUSED)
			offered[count++] = keys[i].name;
	}
	offered[count] = "partition";
	if (found && text[strcspn(text, "=")])
		return found;
	if (found || ddp_scan_word("key", name, offered, error) >= 0)
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s has no value%s; "
			      "write KEY=VALUE, or partition=NAME:KEY=VALUE",
			      name, found ? "" : " of its own here");
	return NULL;
}

static int read_argument(const char *text, struct ddp_error *error)
{
	struct argument *argument = &site.arguments[site.count];

	if (site.count == ARGUMENTS_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "more than %d arguments", ARGUMENTS_MAX);
	argument->text = skip_partitions(text, &argument->partitions, error);
	if (!argument->text)
		return -1;
	argument->key = find_key(argument->text, error);
	if (!argument->key)
		return -1;
	argument->value = strchr(argument->text, '=') + 1;
	if (parse_value(argument->key, argument->value, &site.all, error) < 0)
		return -1;
	site.count++;
	return 0;
}

void ddp_site_read(int argc, char **argv)
{
	struct ddp_error why;
	int i;

	for (i = 0; i < argc && !site.error.code; i++)
		if (read_argument(argv[i], &why) < 0)
			ddp_error_set(&site.error, DDP_ERROR_ARGUMENT,
				      "plugstack.conf: spank_ddp.so: %.128s: "
				      "%s", argv[i], why.text);
}

const char *ddp_site_error(void)
{
	return site.error.code ? site.error.text : NULL;
}

/* A job that may run in one of several ("a,b") is for none of them yet. */
static bool holds(const struct argument *argument, const char *partition)
{
	const char *at = argument->partitions;
	char item[DDP_ITEM_SIZE];

	if (!at)
		return true;
	while (partition && ddp_site_item(&at, item, sizeof(item)))
		if (strcmp(item, partition) == 0)
			return true;
	return false;
}

void ddp_site_apply(struct ddp_plugin *plugin, const char *partition)
{
	struct argument *at, *end = site.arguments + site.count;

	for (at = site.arguments; at < end; at++)
		if (!at->partitions)
			parse_value(at->key, at->value, plugin, NULL);
	for (at = site.arguments; at < end; at++)
		if (at->partitions && holds(at, partition))
			parse_value(at->key, at->value, plugin, NULL);
}

static void tell_items(const char *key, const char *list,
		       ddp_site_teller *tell, void *context)
{
	char item[DDP_ITEM_SIZE];

	while (ddp_site_item(&list, item, sizeof(item)))
		if (*item != '-')
			tell(context, key, item);
}

void ddp_site_names(ddp_site_teller *tell, void *context)
{
	const struct argument *at, *end = site.arguments + site.count;

	for (at = site.arguments; at < end; at++) {
		if (at->partitions)
			tell_items("partition", at->partitions, tell, context);
		if (at->key->kind == KEY_WHO)
			tell_items(at->key->name, at->value, tell, context);
	}
}

static void note_partition(void *context, const char *key, const char *name)
{
	bool *asks = context;

	(void)key;
	*asks |= *name != '@';
}

bool ddp_site_asks_partition(void)
{
	bool asks = false;

	ddp_site_names(note_partition, &asks);
	return asks;
}

/* Returns true if one argument replaces what the other has set. */
static bool replaces(const struct argument *one, const struct argument *other)
{
	bool later = !!one->partitions != !!other->partitions ?
		!!one->partitions : one > other;

	return later && one->key == other->key &&
	       (one->key->kind != KEY_VARIABLE ||
		strncmp(one->value, other->value,
			name_length(one->value) + 1) == 0);
}

const char *ddp_site_default(size_t index, const char *partition)
{
	const struct argument *argument = &site.arguments[index], *at;

	if (index >= site.count)
		return NULL;
	if ((argument->key->kind != KEY_STEP &&
	     argument->key->kind != KEY_VARIABLE) ||
	    !holds(argument, partition))
		return "";
	for (at = site.arguments; at < site.arguments + site.count; at++)
		if (holds(at, partition) && replaces(at, argument))
			return "";
	return argument->text;
}

const char *ddp_site_env(size_t index)
{
	const struct argument *argument = &site.arguments[index];

	if (index >= site.count)
		return NULL;
	return argument->key->kind == KEY_VARIABLE ? argument->value : "";
}
