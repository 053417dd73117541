/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The --ddp options, and what holds in the end. In slurmstepd this runs as
 * root, on options that the user typed: it parses and keeps them, and opens
 * nothing that they name.
 *
 * An option can reach its callback twice: first from a job's environment, then
 * from the command line. The later value replaces the earlier one.
 */
#define _GNU_SOURCE
#include "options/options.h"

#include <stdlib.h>
#include <string.h>

#include "layout/port_range.h"
#include "options/site.h"

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
	const struct ddp_option *row = ddp_option_table;
	int i;

	ddp_plugin = built_in;
	ddp_site_apply(&ddp_plugin, said.partition);
	for (i = 0; i < DDP_OPTION_COUNT; i++, row++) {
		memset(&said.typed[i].error, 0, sizeof(said.typed[i].error));
		if (!said.typed[i].value)
			continue;
		if (i > 0)
			ddp_plugin.stray = row->name;
		row->parse(row, said.typed[i].value, &ddp_plugin,
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

	while (ddp_site_item(&list, item, sizeof(item)))
		if (strcmp(item, word) == 0)
			return true;
	return false;
}

bool ddp_options_typed(const char *option)
{
	size_t length = strcspn(option, "=");
	const char *name;
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		name = ddp_option_table[i].name;
		if (said.typed[i].value && strlen(name) == length &&
		    strncmp(option, name, length) == 0)
			return !option[length] ||
			       has_word(said.typed[i].value,
					option + length + 1);
	}
	return false;
}

/* sbatch and salloc would not load a static table of options. */
void ddp_options_register(spank_t spank)
{
	static struct spank_option options[DDP_OPTION_COUNT];
	const struct ddp_option *row;
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++) {
		row = &ddp_option_table[i];
		options[i] = (struct spank_option){
			.name = (char *)row->name + strlen("--"),
			.arginfo = (char *)row->values,
			.usage = (char *)row->usage,
			.has_arg = row->has_arg, .val = i, .cb = call_option
		};
		if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
			slurm_error("slurm-ddp: cannot register %s", row->name);
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
		ddp_plugin.grace_s && ddp_options_typed("--ddp-grace") ?
		"--ddp-grace" :
		ddp_plugin.notice.number ? "--ddp-signal" :
		ddp_plugin.watchdog_s && ddp_options_typed("--ddp-watchdog") ?
		"--ddp-watchdog" :
		ddp_plugin.restarts && ddp_options_typed("--ddp-restarts") ?
		"--ddp-restarts" : NULL;
}

bool ddp_options_place(void)
{
	return ddp_plugin.gpus != DDP_GPUS_OFF ||
	       ddp_plugin.cpus != DDP_CPUS_OFF || ddp_plugin.explain ||
	       ddp_plugin.dry_run;
}
