/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds what is wrong in what Slurm says of its configuration. */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SRUN_PORTS = 5,		/* that one srun --pty listens on */
	SRUN_PORTS_MANY = 1000,
	SRUN_HOSTS = 48		/* of which it needs two more beyond */
};

/* The most CPUs of a node, and which it is; and how many nodes there are. */
struct largest {
	unsigned long cpus, count;
	char name[256];
};

static struct largest find_largest(const char *nodes)
{
	struct largest largest = { 0 };
	char value[256];
	unsigned long cpus;

	for (; nodes; nodes = check_next_line(nodes)) {
		if (!check_word(nodes, "CPUTot", value, sizeof(value)))
			continue;
		largest.count++;
		cpus = strtoul(value, NULL, 10);
		if (cpus <= largest.cpus)
			continue;
		largest.cpus = cpus;
		check_word(nodes, "NodeName", largest.name,
			   sizeof(largest.name));
	}
	return largest;
}

/* "a-b" to its ends; false: it is not that. */
static bool read_range(const char *text, unsigned long *first,
		       unsigned long *last)
{
	char *end;

	*first = strtoul(text, &end, 10);
	if (end == text || *end != '-')
		return false;
	text = end + 1;
	*last = strtoul(text, &end, 10);
	return end != text && *first > 0 && *first <= *last && *last < 65536;
}

static void check_kill(struct check *out, const char *config)
{
	char value[64];

	if (!check_get(config, "KillOnBadExit", value, sizeof(value)))
		check_add(out, CHECK_UNKNOWN, "KillOnBadExit",
			  "scontrol does not tell it");
	else if (strcmp(value, "0") == 0)
		check_add(out, CHECK_ADVICE, "KillOnBadExit",
			  "0: without --ddp, a rank that fails leaves the "
			  "others waiting until the job's time is over; set "
			  "KillOnBadExit=1 in slurm.conf (srun --ddp does so "
			  "for its own steps)");
	else
		check_add(out, CHECK_OK, "KillOnBadExit", "%s", value);
}

/*
 * Slurm reserves, for each step, a port for each task of its fullest node and
 * one more. At worst each CPU of a node is a step of its own, with two.
 */
static unsigned long count_wanted_ports(const struct largest *node)
{
	return 2 * node->cpus;
}

static void check_mpi_range(struct check *out, unsigned long first,
			    unsigned long last, const struct largest *node,
			    const char *fix)
{
	unsigned long size = last - first + 1;

	if (node->cpus == 0)
		check_add(out, CHECK_UNKNOWN, "MpiParams", "ports=%lu-%lu: "
			  "scontrol tells of no node that they could be "
			  "compared with", first, last);
	else if (size < node->cpus + 1)
		check_add(out, CHECK_WRONG, "MpiParams", "ports=%lu-%lu are "
			  "%lu ports, and a step with a task for each of the "
			  "%lu CPUs of %s needs %lu, or it does not start; %s",
			  first, last, size, node->cpus, node->name,
			  node->cpus + 1, fix);
	else if (size < count_wanted_ports(node))
		check_add(out, CHECK_ADVICE, "MpiParams", "ports=%lu-%lu are "
			  "%lu ports, too few for many small steps at once on "
			  "the %lu CPUs of %s, which can need %lu; %s", first,
			  last, size, node->cpus, node->name,
			  count_wanted_ports(node), fix);
	else
		check_add(out, CHECK_OK, "MpiParams", "ports=%lu-%lu", first,
			  last);
}

static void check_mpi_ports(struct check *out, const char *config,
			    const struct largest *node)
{
	unsigned long first, last, wanted = count_wanted_ports(node);
	char value[CHECK_VALUE_SIZE], fix[80];
	const char *ports;

	check_get(config, "MpiParams", value, sizeof(value));
	ports = strstr(value, "ports=");
	snprintf(fix, sizeof(fix), "set MpiParams=ports=12000-%lu in "
		 "slurm.conf", 11999 + (wanted > 1000 ? wanted : 1000));
	if (!ports)
		check_add(out, CHECK_ADVICE, "MpiParams", "no ports: "
			  "MASTER_PORT is computed and tried, but Slurm does "
			  "not reserve it; %s", fix);
	else if (!read_range(ports + 6, &first, &last))
		check_add(out, CHECK_WRONG, "MpiParams", "%s is no range of "
			  "ports; %s", value, fix);
	else
		check_mpi_range(out, first, last, node, fix);
}

/* The ports from first to last, of which an srun needs so many. */
static void check_srun_range(struct check *out, unsigned long first,
			     unsigned long last, unsigned long needed)
{
	unsigned long size = last - first + 1;

	if (size < needed)
		check_add(out, CHECK_WRONG, "SrunPortRange", "%lu-%lu are %lu "
			  "ports, and one srun on all nodes needs %lu, or it "
			  "does not start; set SrunPortRange=60001-63000 in "
			  "slurm.conf", first, last, size, needed);
	else if (size < SRUN_PORTS_MANY)
		check_add(out, CHECK_ADVICE, "SrunPortRange", "%lu-%lu are "
			  "%lu ports, enough for %lu sruns at once on one "
			  "machine; set 1000 or more in slurm.conf, such as "
			  "SrunPortRange=60001-63000", first, last, size,
			  size / needed);
	else
		check_add(out, CHECK_OK, "SrunPortRange", "%lu-%lu", first,
			  last);
}

static void check_srun_ports(struct check *out, const char *config,
			     const struct largest *node)
{
	unsigned long first, last, needed = SRUN_PORTS;
	char value[64];

	if (node->count > SRUN_HOSTS)
		needed += 2 * ((node->count - 1) / SRUN_HOSTS);
	if (!check_get(config, "SrunPortRange", value, sizeof(value)) ||
	    strcmp(value, "0-0") == 0)
		check_add(out, CHECK_OK, "SrunPortRange", "none: srun takes "
			  "any free port (compute nodes must reach all of "
			  "them)");
	else if (!read_range(value, &first, &last))
		check_add(out, CHECK_WRONG, "SrunPortRange", "%s is no range "
			  "of ports; set SrunPortRange=60001-63000 in "
			  "slurm.conf, or leave it out", value);
	else
		check_srun_range(out, first, last, needed);
}

/* A setting that should be a certain word. */
struct wish {
	const char *name, *part;	/* the word is in the value */
	const char *why;		/* if it is not */
};

static void check_wish(struct check *out, const char *config,
		       const struct wish *wish)
{
	char value[CHECK_VALUE_SIZE];

	if (!check_get(config, wish->name, value, sizeof(value)))
		check_add(out, CHECK_UNKNOWN, wish->name,
			  "scontrol does not tell it");
	else if (strcasestr(value, wish->part))
		check_add(out, CHECK_OK, wish->name, "%s", value);
	else
		check_add(out, CHECK_ADVICE, wish->name, "%s: %s", value,
			  wish->why);
}

static void check_cgroups(struct check *out, const char *config)
{
	static const struct wish wishes[] = {
		{ "ProctrackType", "cgroup", "processes that leave their "
		  "session outlive the step and keep GPUs busy; set "
		  "ProctrackType=proctrack/cgroup in slurm.conf" },
		{ "ConstrainCores", "yes", "jobs of one node can use each "
		  "other's cores; set ConstrainCores=yes in cgroup.conf" },
		{ "ConstrainDevices", "yes", "jobs of one node can use each "
		  "other's GPUs; set ConstrainDevices=yes in cgroup.conf" },
	};
	char value[CHECK_VALUE_SIZE];
	size_t i;

	for (i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		if (strcmp(wishes[i].name, "ConstrainDevices") == 0 &&
		    (!check_get(config, "GresTypes", value, sizeof(value)) ||
		     !strstr(value, "gpu")))
			continue;
		check_wish(out, config, &wishes[i]);
	}
	check_get(config, "TaskPlugin", value, sizeof(value));
	if (strstr(value, "task/cgroup"))
		check_add(out, CHECK_OK, "TaskPlugin", "%s", value);
	else
		check_add(out, CHECK_ADVICE, "TaskPlugin", "%s lacks "
			  "task/cgroup, without which ConstrainCores and "
			  "ConstrainDevices have no effect; set TaskPlugin="
			  "task/affinity,task/cgroup in slurm.conf",
			  *value ? value : "what is set");
}

/* The nodes' slurmd: a plugin fits one release, major and minor number. */
static void check_versions(struct check *out, const char *config,
			   const char *nodes)
{
	char slurm[64], value[64], name[256];
	struct check_group other = { .count = 0 }, silent = { .count = 0 };
	size_t count = 0;

	check_get(config, "SLURM_VERSION", slurm, sizeof(slurm));
	for (; nodes; nodes = check_next_line(nodes)) {
		if (!check_word(nodes, "NodeName", name, sizeof(name)))
			continue;
		count++;
		if (!check_word(nodes, "Version", value, sizeof(value)))
			check_group_add(&silent, name);
		else if (strcmp(value, slurm) != 0)
			check_group_add(&other, name);
	}
	if (other.count > 0)
		check_add(out, CHECK_WRONG, "Slurm", "slurmctld is of %s, and "
			  "slurmd of another version on %s; install one "
			  "version on all, and the slurm-ddp that was built "
			  "for it", slurm, check_group_names(&other));
	if (silent.count > 0)
		check_add(out, CHECK_UNKNOWN, "Slurm", "the slurmd of %s does "
			  "not tell its version: is it up?",
			  check_group_names(&silent));
	if (count == 0)
		check_add(out, CHECK_UNKNOWN, "Slurm", "%s; scontrol show "
			  "nodes tells of no node", slurm);
	else if (other.count + silent.count == 0)
		check_add(out, CHECK_OK, "Slurm", "%s, on %zu node%s too",
			  slurm, count, count > 1 ? "s" : "");
}

void check_config(struct check *out, const char *config, const char *nodes)
{
	struct largest largest = find_largest(nodes);

	check_versions(out, config, nodes);
	check_kill(out, config);
	check_mpi_ports(out, config, &largest);
	check_srun_ports(out, config, &largest);
	check_cgroups(out, config);
}
