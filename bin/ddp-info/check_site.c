/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what is wrong in the plugin's arguments in plugstack.conf. */
#define _GNU_SOURCE
#include "check.h"

#include <string.h>

static void judge_arguments(const struct check_world *world,
			    const struct check_node *node,
			    struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE];

	(void)world;
	if (check_fact(node, "argument_flaw", value, sizeof(value)))
		check_say(verdict, CHECK_WRONG, "refuses every step: %.900s",
			  value);
	else if (check_fact(node, "arguments", value, sizeof(value)))
		check_say(verdict, CHECK_OK, "knows its keys and values in "
			  "plugstack.conf");
}

static bool has_partition(const char *partitions, const char *name)
{
	char value[CHECK_VALUE_SIZE];

	for (; partitions; partitions = check_next_line(partitions))
		if (check_word(partitions, "PartitionName", value,
			       sizeof(value)) && strcmp(value, name) == 0)
			return true;
	return false;
}

static void judge_partitions(const struct check_world *world,
			     const struct check_node *node,
			     struct check_verdict *verdict)
{
	char words[CHECK_VALUE_SIZE], *word, *name, *save;
	struct check_group unknown = { .count = 0 };

	if (!check_fact(node, "partitions", words, sizeof(words)))
		return;
	if (!world->partitions ||
	    !strstr(world->partitions, "PartitionName=")) {
		check_say(verdict, CHECK_UNKNOWN, "scontrol tells of no "
			  "partition that its %.600s could be compared with",
			  words);
		return;
	}
	for (word = strtok_r(words, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		name = strchr(word, '=');
		if (name && !has_partition(world->partitions, name + 1))
			check_group_add(&unknown, word);
	}
	if (unknown.count > 0)
		check_say(verdict, CHECK_WRONG, "%.600s: Slurm has no such "
			  "partition; correct the name, or leave it out",
			  check_group_names(&unknown));
}

static void judge_groups(const struct check_world *world,
			 const struct check_node *node,
			 struct check_verdict *verdict)
{
	char words[CHECK_VALUE_SIZE];

	(void)world;
	if (check_fact(node, "groups_lacking", words, sizeof(words)))
		check_say(verdict, CHECK_WRONG, "%.600s: there is no such "
			  "group on this machine (getent group); correct the "
			  "name, or leave it out", words);
}

static void judge_interface(const struct check_world *world,
			    const struct check_node *node,
			    struct check_verdict *verdict)
{
	char name[64];

	(void)world;
	if (check_fact(node, "interface_lacking", name, sizeof(name)))
		check_say(verdict, CHECK_WRONG, "interface=%s: there is no "
			  "such network interface with an address, and tasks "
			  "are refused; give one that the node has (partition="
			  "NAME:interface=... where nodes differ)", name);
}

void check_site(struct check *out, const struct check_world *world)
{
	check_each(out, world, "srun --ddp", judge_arguments);
	check_each(out, world, "plugstack.conf", judge_partitions);
	check_each(out, world, "plugstack.conf", judge_groups);
	check_each(out, world, "plugstack.conf", judge_interface);
}
