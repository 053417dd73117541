/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges what nodes call each other, and folders that must be each node's own.
 */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "util/interface.h"

static void judge_names(const struct check_world *world,
			const struct check_node *node,
			struct check_verdict *verdict)
{
	char unresolved[512], loopback[512], count[32];

	(void)world;
	check_fact(node, "unresolved", unresolved, sizeof(unresolved));
	check_fact(node, "loopback", loopback, sizeof(loopback));
	if (*unresolved)
		check_say(verdict, CHECK_WRONG, "cannot resolve %.300s: add "
			  "that to DNS, or to /etc/hosts there", unresolved);
	else if (*loopback)
		check_say(verdict, CHECK_WRONG, "takes %.300s for itself, by "
			  "an address of loopback: correct /etc/hosts there",
			  loopback);
	else if (check_fact(node, "names_flaw", unresolved,
			    sizeof(unresolved)))
		check_say(verdict, CHECK_UNKNOWN, "%.300s", unresolved);
	else if (check_fact(node, "names", count, sizeof(count)))
		check_say(verdict, CHECK_OK, "resolves %s other name%s", count,
			  strcmp(count, "1") == 0 ? "" : "s");
}

static void judge_interface(const struct check_world *world,
			    const struct check_node *node,
			    struct check_verdict *verdict)
{
	char flaw[256];

	(void)world;
	if (check_fact(node, "interface_flaw", flaw, sizeof(flaw)))
		check_say(verdict, CHECK_WRONG, DDP_INTERFACE_FLAW, flaw);
}

/* Returns another node that has the same folder; NULL: none has. */
static const struct check_node *find_sharer(const struct check_world *world,
					    const struct check_node *node,
					    const char *fact, const char *own)
{
	char value[256];
	size_t i;

	for (i = 0; i < world->count; i++)
		if (&world->nodes[i] != node && !world->nodes[i].here &&
		    check_fact(&world->nodes[i], fact, value, sizeof(value)) &&
		    strcmp(value, own) == 0)
			return &world->nodes[i];
	return NULL;
}

static void judge_folder(const struct check_world *world,
			 const struct check_node *node, const char *fact,
			 const char *key, struct check_verdict *verdict)
{
	char own[256], flaw[512], name[64];

	snprintf(name, sizeof(name), "%s_flaw", fact);
	if (node->here)
		return;
	if (check_fact(node, name, flaw, sizeof(flaw)))
		check_say(verdict, CHECK_UNKNOWN, "%.400s", flaw);
	else if (!check_fact(node, fact, own, sizeof(own)))
		check_say(verdict, CHECK_UNKNOWN, "cannot be examined there");
	else if (find_sharer(world, node, fact, own))
		check_say(verdict, CHECK_WRONG, "nodes share this folder, in "
			  "which mpi/pmix needs names of its own: put it on a "
			  "local disk, or %%n into %s in slurm.conf", key);
	else
		check_say(verdict, CHECK_OK, "each node's own");
}

static void judge_spool(const struct check_world *world,
			const struct check_node *node,
			struct check_verdict *verdict)
{
	judge_folder(world, node, "spool", "SlurmdSpoolDir", verdict);
}

static void judge_tmp(const struct check_world *world,
		      const struct check_node *node,
		      struct check_verdict *verdict)
{
	judge_folder(world, node, "tmp", "TmpFS", verdict);
}

void check_places(struct check *out, const struct check_world *world)
{
	check_each(out, world, "names", judge_names);
	check_each(out, world, "interface", judge_interface);
	check_each(out, world, "SlurmdSpoolDir", judge_spool);
	check_each(out, world, "TmpFS", judge_tmp);
}
