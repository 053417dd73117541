/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges the plugin: whether all nodes have it, what plugstack.conf tells it,
 * and whether its ranks meet.
 */
#define _GNU_SOURCE
#include "check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line of plugstack.conf that names the plugin. */
static bool judge_line(const struct check_node *node, const char *stack,
		       struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE];
	unsigned long count;

	if (check_fact(node, "stack_flaw", value, sizeof(value))) {
		check_say(verdict, CHECK_UNKNOWN, "%.500s cannot be read: "
			  "%.200s; let users read it", stack, value);
		return false;
	}
	check_fact(node, "plugin_lines", value, sizeof(value));
	count = strtoul(value, NULL, 10);
	if (count == 0)
		check_say(verdict, CHECK_WRONG, "no line of %.500s names "
			  "spank_ddp.so: add \"optional spank_ddp.so\" to it, "
			  "or include slurm-ddp's ddp.conf", stack);
	return count > 0;
}

static void judge_plugin(const struct check_node *node,
			 struct check_verdict *verdict)
{
	char stack[CHECK_VALUE_SIZE], path[CHECK_VALUE_SIZE];
	char value[CHECK_VALUE_SIZE];

	if (!check_fact(node, "stack", stack, sizeof(stack))) {
		check_say(verdict, CHECK_UNKNOWN, "scontrol does not tell "
			  "where plugstack.conf is");
		return;
	}
	if (!judge_line(node, stack, verdict))
		return;
	check_fact(node, "plugin", path, sizeof(path));
	if (check_fact(node, "plugin_flaw", value, sizeof(value)))
		check_say(verdict, CHECK_WRONG, "%.500s names %.300s: %.100s; "
			  "install slurm-ddp there", stack, path, value);
	else if (!check_fact(node, "plugin_version", value, sizeof(value)))
		check_say(verdict, CHECK_WRONG, "%.500s does not tell its "
			  "version, and this ddp-info is of slurm-ddp %s: "
			  "install one version on all nodes", path,
			  verdict->world->version);
	else if (strcmp(value, verdict->world->version) != 0)
		check_say(verdict, CHECK_WRONG, "%.500s is of slurm-ddp %.60s, "
			  "and this ddp-info of %s: install one version on "
			  "all nodes", path, value, verdict->world->version);
	else if (check_fact(node, "plugin_required", path, sizeof(path)))
		check_say(verdict, CHECK_ADVICE, "%.500s says \"required\": "
			  "where the plugin does not load, no step starts, "
			  "with or without --ddp; write \"optional\"", stack);
	else
		check_say(verdict, CHECK_OK, "%s, in %.500s", value, stack);
}

/* ---- the plugin's arguments in plugstack.conf */

static void judge_arguments(const struct check_node *node,
			    struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE];

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

static void judge_partitions(const struct check_node *node,
			     struct check_verdict *verdict)
{
	const char *partitions = verdict->world->partitions;
	char words[CHECK_VALUE_SIZE], *word, *name, *save;
	struct check_group unknown = { .count = 0 };

	if (!check_fact(node, "partitions", words, sizeof(words)))
		return;
	if (!partitions || !strstr(partitions, "PartitionName=")) {
		check_say(verdict, CHECK_UNKNOWN, "scontrol tells of no "
			  "partition that its %.600s could be compared with",
			  words);
		return;
	}
	for (word = strtok_r(words, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		name = strchr(word, '=');
		if (name && !has_partition(partitions, name + 1))
			check_group_add(&unknown, word);
	}
	if (unknown.count > 0)
		check_say(verdict, CHECK_WRONG, "%.600s: Slurm has no such "
			  "partition; correct the name, or leave it out",
			  check_group_names(&unknown));
}

static void judge_groups(const struct check_node *node,
			 struct check_verdict *verdict)
{
	char words[CHECK_VALUE_SIZE];

	if (check_fact(node, "groups_lacking", words, sizeof(words)))
		check_say(verdict, CHECK_WRONG, "%.600s: there is no such "
			  "group on this machine (getent group); correct the "
			  "name, or leave it out", words);
}

static void judge_interface(const struct check_node *node,
			    struct check_verdict *verdict)
{
	char name[64];

	if (check_fact(node, "interface_lacking", name, sizeof(name)))
		check_say(verdict, CHECK_WRONG, "interface=%s: there is no "
			  "such network interface with an address, and tasks "
			  "are refused; give one that the node has (partition="
			  "NAME:interface=... where nodes differ)", name);
}

/* ---- a step */

/* srun --ddp has set RANK to a word that only the plugin replaces. */
static void judge_rank(const struct check_node *node,
		       struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE], yes[16];

	if (check_fact(node, "refused", value, sizeof(value))) {
		check_say(verdict, CHECK_WRONG, "refuses a step: %.900s",
			  value);
		return;
	}
	if (!check_fact(node, "rank", value, sizeof(value)))
		return;
	if (isdigit((unsigned char)*value) &&
	    check_fact(node, "unwatched", yes, sizeof(yes)))
		check_say(verdict, CHECK_WRONG, "gives ranks, but nobody can "
			  "watch them, and --ddp-watchdog and --ddp-restarts "
			  "are refused; run srun --ddp there, which says why");
	else if (isdigit((unsigned char)*value))
		check_say(verdict, CHECK_OK, "gives ranks");
	else
		check_say(verdict, CHECK_WRONG, "the plugin did nothing in a "
			  "step with --ddp; install slurm-ddp of this Slurm "
			  "there and name it in plugstack.conf");
}

static void judge_meeting(const struct check_node *node,
			  struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE];

	if (node->here)
		return;
	if (check_fact(node, "met", value, sizeof(value)))
		check_say(verdict, CHECK_OK, "ranks met");
	else if (check_fact(node, "meet_unknown", value, sizeof(value)))
		check_say(verdict, CHECK_UNKNOWN, "%.500s", value);
	else if (check_fact(node, "meet_flaw", value, sizeof(value)))
		check_say(verdict, CHECK_WRONG, "ranks did not meet: %.500s%s",
			  value, strstr(value, "slurm-ddp: ") ? "" :
			  "; look into slurmd's log there for mpi/pmix");
}

static void judge_security(const struct check_node *node,
			   struct check_verdict *verdict)
{
	char value[CHECK_VALUE_SIZE];

	if (check_fact(node, "pmix_security", value, sizeof(value)) &&
	    strstr(value, "munge"))
		check_say(verdict, CHECK_ADVICE, "its PMIx wants munge, which "
			  "a program in a container does not reach; set "
			  "PMIX_MCA_psec=^munge for slurmd and for jobs");
}

/* A client's PMIx may not be newer than the server's by much. */
static void judge_server(const struct check_node *node,
			 struct check_verdict *verdict)
{
	char server[64], client[64];

	if (check_fact(node, "pmix_server", server, sizeof(server)) &&
	    check_fact(node, "pmix", client, sizeof(client)) &&
	    strtoul(server, NULL, 10) != strtoul(client, NULL, 10))
		check_say(verdict, CHECK_ADVICE, "Slurm has PMIx %s, and "
			  "programs find %s; if they do not start, let them "
			  "use the same", server, client);
}

/*
 * Faults that versions are known for, and that a small step does not show. Each
 * source is the list of changes (CHANGELOG in Slurm's source) of the release that
 * mended it.
 */
static const struct known {
	const char *since, *mended;	/* releases of Slurm */
	const char *pmix_since;		/* NULL: the fault is Slurm's alone */
	const char *pmix_mended;	/* NULL: no PMIx is without it */
	enum check_level level;
	const char *what;
} known[] = {
	{ "22.05", "22.05.9", NULL, NULL, CHECK_ADVICE,
	  "some steps hang instead of running" },
	{ "23.02", "23.02.3", NULL, NULL, CHECK_ADVICE,
	  "steps with --cpus-per-gpu and a type of GPU do not start" },
	{ "26.05", "26.05.3", NULL, NULL, CHECK_ADVICE,
	  "srun can hang when its step has ended" },
	{ "23.02", "23.02.4", "0", NULL, CHECK_ADVICE,
	  "a step on more nodes than TreeWidth ends slurmstepd" },
	{ "25.05", "25.05.4", "0", NULL, CHECK_ADVICE,
	  "slurmstepd can hang when a step is cancelled" },
	{ "0", "25.11.2", "5.0.8", "5.0.10", CHECK_WRONG,
	  "programs hang when they connect" },
	{ "0", "25.11.7", "3.2", NULL, CHECK_ADVICE,
	  "steps with very many tasks fail to start" },
	{ "26.05", "26.05.2", "3.2", NULL, CHECK_ADVICE,
	  "steps with very many tasks fail to start" },
};

/* Returns true from since on and before until; NULL: that has not come yet. */
static bool is_between(const char *version, const char *since,
		       const char *until)
{
	return check_compare_versions(version, since) >= 0 &&
	       (!until || check_compare_versions(version, until) < 0);
}

/* Says which faults these releases have; pmix NULL: those of Slurm alone. */
static void say_known(const char *slurm, const char *pmix,
		      struct check_verdict *verdict)
{
	const struct known *row = known, *end = known +
		sizeof(known) / sizeof(known[0]);
	enum check_level level = CHECK_ADVICE;
	char text[768] = "";
	size_t used = 0;

	for (; row < end; row++) {
		if (!is_between(slurm, row->since, row->mended) ||
		    !pmix != !row->pmix_since ||
		    (pmix && !is_between(pmix, row->pmix_since,
					 row->pmix_mended)))
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%s%s (mended in %s)",
					 used ? "; " : "", row->what,
					 row->mended);
		if (row->level == CHECK_WRONG)
			level = CHECK_WRONG;
	}
	if (used > 0)
		check_say(verdict, level, "in Slurm %s%s%s %s", slurm,
			  pmix ? " with PMIx " : "", pmix ? pmix : "", text);
}

static void judge_slurm(const struct check_node *node,
			struct check_verdict *verdict)
{
	char slurm[64];

	if (node->here && check_get(verdict->world->config, "SLURM_VERSION",
				    slurm, sizeof(slurm)))
		say_known(slurm, NULL, verdict);
}

static void judge_pmix(const struct check_node *node,
		       struct check_verdict *verdict)
{
	char pmix[64], slurm[64];

	if (check_fact(node, "pmix", pmix, sizeof(pmix)) &&
	    check_get(verdict->world->config, "SLURM_VERSION", slurm,
		      sizeof(slurm)))
		say_known(slurm, pmix, verdict);
}

void check_plugin(struct check *out, const struct check_world *world)
{
	check_each(out, world, "spank_ddp.so", judge_plugin);
	check_each(out, world, "srun --ddp", judge_arguments);
	check_each(out, world, "plugstack.conf", judge_partitions);
	check_each(out, world, "plugstack.conf", judge_groups);
	check_each(out, world, "plugstack.conf", judge_interface);
	check_each(out, world, "srun --ddp", judge_rank);
	check_each(out, world, "PMIx", judge_meeting);
	check_each(out, world, "PMIx", judge_security);
	check_each(out, world, "Slurm", judge_slurm);
	check_each(out, world, "PMIx", judge_pmix);
	check_each(out, world, "PMIx", judge_server);
}
