/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits, sizes and clocks of nodes that are too low, too small or wrong. */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOFILE_MIN = 4096 };

static const double shm_min = 1 << 30, clock_max = 1, mib = 1 << 20;

/* Returns where a step's limits come from, so where to raise one. */
static const char *say_source(const struct check_world *world,
			      const char *limit)
{
	char value[CHECK_VALUE_SIZE];

	if (check_get(world->config, "PropagateResourceLimitsExcept", value,
		      sizeof(value)) && strstr(value, limit))
		return "in slurmd's service there";
	if (check_get(world->config, "PropagateResourceLimits", value,
		      sizeof(value)) && !strstr(value, "ALL") &&
	    !strstr(value, limit))
		return "in slurmd's service there";
	return "where jobs are submitted (steps take it from there; or name it "
	       "in PropagateResourceLimitsExcept of slurm.conf, and raise it "
	       "in slurmd's service)";
}

static void judge_nofile(const struct check_world *world,
			 const struct check_node *node,
			 struct check_verdict *verdict)
{
	char value[64];

	if (!check_fact(node, "nofile", value, sizeof(value)))
		return;
	if (strcmp(value, "unlimited") == 0 ||
	    strtoul(value, NULL, 10) >= NOFILE_MIN)
		check_say(verdict, CHECK_OK, "nofile %s", value);
	else
		check_say(verdict, CHECK_WRONG, "nofile is %s: ranks and data "
			  "loaders run out of open files; raise it to 65536 "
			  "%s", value, say_source(world, "NOFILE"));
}

static void judge_memlock(const struct check_world *world,
			  const struct check_node *node,
			  struct check_verdict *verdict)
{
	char value[64], rdma[16];
	bool has_rdma = check_fact(node, "rdma", rdma, sizeof(rdma));

	if (!check_fact(node, "memlock", value, sizeof(value)))
		return;
	if (strcmp(value, "unlimited") == 0)
		check_say(verdict, CHECK_OK, "memlock unlimited");
	else if (!has_rdma)
		check_say(verdict, CHECK_OK, "memlock %.0f MiB, and no "
			  "InfiniBand that needs more", atof(value) / mib);
	else
		check_say(verdict, CHECK_WRONG, "memlock is %.0f MiB: "
			  "InfiniBand cannot register memory, and NCCL and "
			  "MPI fail or fall back to TCP; make it unlimited %s",
			  atof(value) / mib, say_source(world, "MEMLOCK"));
}

static void judge_shm(const struct check_world *world,
		      const struct check_node *node,
		      struct check_verdict *verdict)
{
	char size[64], flaw[512];

	(void)world;
	if (check_fact(node, "shm_flaw", flaw, sizeof(flaw)))
		check_say(verdict, CHECK_WRONG, "/dev/shm: %.400s; mount a "
			  "tmpfs there that all users can write", flaw);
	else if (!check_fact(node, "shm", size, sizeof(size)))
		return;
	else if (atof(size) < shm_min)
		check_say(verdict, CHECK_WRONG, "/dev/shm has %.0f MiB: NCCL, "
			  "MPI and data loaders fail when it is full; mount -o "
			  "remount,size=50%% /dev/shm, and set it so in "
			  "/etc/fstab", atof(size) / mib);
	else
		check_say(verdict, CHECK_OK, "/dev/shm has 1 GiB or more");
}

/* The facts were written after one time and before another of this machine. */
static void judge_clock(const struct check_world *world,
			const struct check_node *node,
			struct check_verdict *verdict)
{
	char value[64];
	double clock, off = 0;

	(void)world;
	if (node->before <= 0 ||
	    !check_fact(node, "clock", value, sizeof(value)))
		return;
	clock = strtod(value, NULL);
	if (clock > node->before)
		off = clock - node->before;
	else if (clock < node->after)
		off = clock - node->after;
	if (off > clock_max || off < -clock_max)
		check_say(verdict, CHECK_WRONG, "its clock is %.0f s %s this "
			  "machine's: start chronyd or ntpd on both",
			  off > 0 ? off : -off,
			  off > 0 ? "ahead of" : "behind");
	else
		check_say(verdict, CHECK_OK, "as this machine's");
}

/*
 * Returns true if the kernel of a compute node gives some of these ports to any
 * connection, too. Nobody listens on the login node's.
 */
static bool has_ephemeral(const struct check_node *node, unsigned long first,
			  unsigned long last, unsigned long *low,
			  unsigned long *high)
{
	char value[64];

	return !node->here && check_fact(node, "ports", value, sizeof(value)) &&
	       sscanf(value, "%lu-%lu", low, high) == 2 && first <= *high &&
	       last >= *low;
}

/* A reserved port that the kernel also gives to any connection may be taken. */
static void judge_ports(const struct check_world *world,
			const struct check_node *node,
			struct check_verdict *verdict)
{
	unsigned long first, last, low, high;
	char value[CHECK_VALUE_SIZE], *ports;

	if (!check_get(world->config, "MpiParams", value, sizeof(value)))
		return;
	ports = strstr(value, "ports=");
	if (ports && sscanf(ports, "ports=%lu-%lu", &first, &last) == 2 &&
	    has_ephemeral(node, first, last, &low, &high))
		check_say(verdict, CHECK_ADVICE, "the kernel gives ports "
			  "%lu-%lu to any connection, so some of ports=%lu-%lu "
			  "can be taken when a step starts; set "
			  "MpiParams=ports=12000-12999 in slurm.conf", low,
			  high, first, last);
}

/* The same of a port that is computed, where Slurm reserves none. */
static void judge_range(const struct check_world *world,
			const struct check_node *node,
			struct check_verdict *verdict)
{
	unsigned long first, last, low, high;
	char value[CHECK_VALUE_SIZE];

	if ((check_get(world->config, "MpiParams", value, sizeof(value)) &&
	     strstr(value, "ports=")) ||
	    !check_fact(node, "port_range", value, sizeof(value)) ||
	    sscanf(value, "%lu-%lu", &first, &last) != 2)
		return;
	if (has_ephemeral(node, first, last, &low, &high))
		check_say(verdict, CHECK_ADVICE, "the kernel gives ports "
			  "%lu-%lu to any connection, so some of port-range="
			  "%lu-%lu can be taken when a step starts; keep them "
			  "apart, by port-range= in plugstack.conf or sysctl "
			  "net.ipv4.ip_local_port_range, or set MpiParams="
			  "ports=12000-12999 in slurm.conf", low, high, first,
			  last);
}

void check_limits(struct check *out, const struct check_world *world)
{
	check_each(out, world, "limits", judge_nofile);
	check_each(out, world, "limits", judge_memlock);
	check_each(out, world, "shared memory", judge_shm);
	check_each(out, world, "clock", judge_clock);
	check_each(out, world, "MpiParams", judge_ports);
	check_each(out, world, "port-range", judge_range);
}
