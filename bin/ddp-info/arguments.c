/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts of what plugstack.conf tells the plugin, read by the plugin's own
 * parser, and of what this machine lacks of it.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "layout/port.h"
#include "options/keys.h"
#include "options/site.h"
#include "util/interface.h"

/* Lists of "KEY=NAME", with a blank before and after each. */
struct named {
	struct ddp_text partitions, lacking;
};

static void add_once(struct ddp_text *list, const char *key, const char *name)
{
	char word[DDP_ITEM_SIZE + 16];

	snprintf(word, sizeof(word), " %s=%s ", key, name);
	if (!list->data || !strstr(list->data, word))
		ddp_text_add(list, "%s", list->data ? word + 1 : word);
}

/* Groups are those of the machine on which srun, sbatch or salloc runs. */
static void add_name(void *context, const char *key, const char *name)
{
	struct named *named = context;

	if (*name != '@')
		add_once(&named->partitions, key, name);
	else if (!getgrnam(name + 1))
		add_once(&named->lacking, key, name);
}

static void add_list(struct ddp_text *text, const char *fact,
		     struct ddp_text *list)
{
	if (list->data && !list->failed) {
		ddp_text_add_quoted(text, "%s%.*s", fact,
				    (int)list->length - 1, list->data);
		ddp_text_add(text, "\n");
	}
	text->failed |= list->failed;
	free(list->data);
}

/* Tasks of this job, and so of its partition, need these of their node. */
static void add_needs(struct ddp_text *text)
{
	struct ddp_plugin plugin = DDP_BUILT_IN;

	ddp_site_apply(&plugin, getenv("SLURM_JOB_PARTITION"));
	ddp_text_add(text, "port_range %u-%u\n", plugin.port_first,
		     plugin.port_last);
	if (ddp_interface_lacks("GLOO_SOCKET_IFNAME", plugin.interface))
		ddp_text_add(text, "interface_lacking %s\n", plugin.interface);
}

void doctor_arguments(struct ddp_text *text, int count, char **arguments,
		      bool is_node)
{
	struct named named = { .partitions = { 0 } };

	ddp_site_read(count, arguments);
	if (count > 0)
		ddp_text_add(text, "arguments %d\n", count);
	if (ddp_site_error())
		ddp_text_add(text, "argument_flaw %s\n", ddp_site_error());
	ddp_site_names(add_name, &named);
	add_list(text, "partitions", &named.partitions);
	add_list(text, "groups_lacking", &named.lacking);
	if (is_node)
		add_needs(text);
}
