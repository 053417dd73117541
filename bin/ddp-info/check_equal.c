/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges what must be the same on all nodes of a job. */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct same {
	const char *fact, *what;
	const char *fix;		/* where it differs */
	bool compute;			/* of compute nodes alone */
};

static const struct same table[] = {
	{ "ddp", "slurm-ddp", "install one version", false },
	{ "pmix", "PMIx", "ranks of one job need one: install one version",
	  false },
	{ "nccl", "NCCL", "ranks of one job need one: install one version",
	  true },
	{ "driver", "NVIDIA driver", "install one version", true },
	{ "cgroup", "cgroups", "steps are confined in two ways: boot the nodes "
	  "with one version", true },
};

/* The value of each node; "" for those that do not count. */
static char (*read_values(const struct check_world *world,
			  const struct same *same))[64]
{
	char (*values)[64] = calloc(world->count + 1, sizeof(*values));
	const struct check_node *node;
	size_t i;

	for (i = 0; values && i < world->count; i++) {
		node = &world->nodes[i];
		if (!node->facts || (same->compute && node->here))
			continue;
		if (!check_fact(node, same->fact, values[i],
				sizeof(values[i])) && !node->here)
			strcpy(values[i], "none");
	}
	return values;
}

/* "4.2.2 on n1, n2; 5.0.7 on n3"; values are cleared. Returns how many. */
static size_t list_values(const struct check_world *world, char (*values)[64],
			  struct ddp_text *text)
{
	struct check_group group;
	char value[64];
	size_t i, k, count = 0;

	for (i = 0; i < world->count; i++) {
		if (!*values[i])
			continue;
		memcpy(value, values[i], sizeof(value));
		memset(&group, 0, sizeof(group));
		for (k = i; k < world->count; k++)
			if (strcmp(values[k], value) == 0) {
				check_group_add(&group, world->nodes[k].name);
				*values[k] = '\0';
			}
		ddp_text_add(text, "%s%s on %s", count++ > 0 ? "; " : "",
			     value, check_group_names(&group));
	}
	return count;
}

static void check_same(struct check *out, const struct check_world *world,
		       const struct same *same)
{
	char (*values)[64] = read_values(world, same), *list;
	struct ddp_text text = { .failed = !values };
	size_t count = values ? list_values(world, values, &text) : 0;

	free(values);
	list = ddp_text_finish(&text);
	if (!list)
		out->text.failed = true;
	else if (count > 1)
		check_add(out, CHECK_WRONG, same->what, "%s; %s", list,
			  same->fix);
	else if (count == 1 && strncmp(list, "none ", 5) != 0)
		check_add(out, CHECK_OK, same->what, "%s", list);
	else if (count == 1)
		check_add(out, CHECK_UNKNOWN, same->what, "none was found, so "
			  "versions are not compared");
	free(list);
}

void check_equal(struct check *out, const struct check_world *world)
{
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		check_same(out, world, &table[i]);
}
