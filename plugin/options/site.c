/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of plugstack.conf: for whom each is, and which of them hold. */
#define _GNU_SOURCE
#include "options/site.h"

#include <stdio.h>
#include <string.h>

#include "options/keys.h"
#include "util/scan.h"

enum { ARGUMENTS_MAX = 256 };

static struct {
	struct argument {
		const struct ddp_key *key;
		const char *text, *value;	/* "KEY=VALUE"; VALUE */
		const char *partitions;		/* up to ':'; NULL: all */
	} arguments[ARGUMENTS_MAX];
	size_t count;
	struct ddp_plugin all;		/* what all of them say, at once */
	struct ddp_error error;		/* the first; code 0: none */
} site;

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
	if (**names != ':' && ddp_keys_list(*names, ':', NULL) == 0)
		return strchr(*names, ':') + 1;
	ddp_error_set(error, DDP_ERROR_ARGUMENT,
		      "not for a partition; write partition=NAME:KEY=VALUE");
	return NULL;
}

static const struct ddp_key *find_key(const char *text, struct ddp_error *error)
{
	const char *offered[DDP_KEY_COUNT + 2] = { NULL };
	const struct ddp_key *found = NULL;
	size_t count = 0, i;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	for (i = 0; i < DDP_KEY_COUNT; i++) {
		if (strcmp(ddp_keys[i].name, name) == 0)
			found = &ddp_keys[i];
		if (ddp_keys[i].kind != DDP_KEY_REFUSED)
			offered[count++] = ddp_keys[i].name;
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
	if (argument->key->parse(argument->value, &site.all, error) < 0)
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
	while (partition && ddp_keys_item(&at, item, sizeof(item)))
		if (strcmp(item, partition) == 0)
			return true;
	return false;
}

void ddp_site_apply(struct ddp_plugin *plugin, const char *partition)
{
	struct argument *at, *end = site.arguments + site.count;

	for (at = site.arguments; at < end; at++)
		if (!at->partitions)
			at->key->parse(at->value, plugin, NULL);
	for (at = site.arguments; at < end; at++)
		if (at->partitions && holds(at, partition))
			at->key->parse(at->value, plugin, NULL);
}

static void tell_items(const char *key, const char *list,
		       ddp_site_teller *tell, void *context)
{
	char item[DDP_ITEM_SIZE];

	while (ddp_keys_item(&list, item, sizeof(item)))
		if (*item != '-')
			tell(context, key, item);
}

void ddp_site_names(ddp_site_teller *tell, void *context)
{
	const struct argument *at, *end = site.arguments + site.count;

	for (at = site.arguments; at < end; at++) {
		if (at->partitions)
			tell_items("partition", at->partitions, tell, context);
		if (at->key->kind == DDP_KEY_WHO)
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
	       (one->key->kind != DDP_KEY_VARIABLE ||
		strncmp(one->value, other->value,
			ddp_keys_name_length(one->value) + 1) == 0);
}

const char *ddp_site_default(size_t index, const char *partition)
{
	const struct argument *argument = &site.arguments[index], *at;

	if (index >= site.count)
		return NULL;
	if ((argument->key->kind != DDP_KEY_STEP &&
	     argument->key->kind != DDP_KEY_VARIABLE) ||
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
	return argument->key->kind == DDP_KEY_VARIABLE ? argument->value : "";
}
