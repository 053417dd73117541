/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges the nodes: what must be the same on all, what is too low or too small,
 * and what they call each other.
 */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/net.h"

/* ---- what must be the same on all nodes */

struct same {
	const char *fact, *what;
	const char *fix;		/* where it differs */
	bool compute;			/* of compute nodes alone */
};

static const struct same sames[] = {
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

/* ---- limits, sizes, clocks and ports */

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

static void judge_nofile(const struct check_node *node,
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
			  "%s", value, say_source(verdict->world,
						  "NOFILE"));
}

static void judge_memlock(const struct check_node *node,
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
			  atof(value) / mib,
			  say_source(verdict->world, "MEMLOCK"));
}

static void judge_shm(const struct check_node *node,
		      struct check_verdict *verdict)
{
	char size[64], left[64], flaw[512];

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
	else if (check_fact(node, "shm_free", left, sizeof(left)) &&
		 atof(left) < shm_min)
		check_say(verdict, CHECK_ADVICE, "/dev/shm has %.0f of %.0f "
			  "MiB free: NCCL, MPI and data loaders fail when it "
			  "is full; remove what ended jobs have left there, if "
			  "no running job uses it",
			  atof(left) / mib, atof(size) / mib);
	else
		check_say(verdict, CHECK_OK, "/dev/shm has 1 GiB or more");
}

/* The facts were written after one time and before another of this machine. */
static void judge_clock(const struct check_node *node,
			struct check_verdict *verdict)
{
	char value[64];
	double clock, off = 0;

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
static void judge_ports(const struct check_node *node,
			struct check_verdict *verdict)
{
	unsigned long first, last, low, high;
	char value[CHECK_VALUE_SIZE], *ports;

	if (!check_get(verdict->world->config, "MpiParams", value,
		       sizeof(value)))
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

/* Returns the first compute node whose plugin computes ports; NULL: none does. */
static const struct check_node *find_range(const struct check_world *world,
					   char *value, size_t size)
{
	size_t i;

	for (i = 0; i < world->count; i++)
		if (check_fact(&world->nodes[i], "port_range", value, size))
			return &world->nodes[i];
	return NULL;
}

/*
 * The same of a port that is computed, where Slurm reserves none. Each node
 * computes it for its ranks.
 */
static void judge_range(const struct check_node *node,
			struct check_verdict *verdict)
{
	const struct check_node *other;
	unsigned long first, last, low, high;
	char value[CHECK_VALUE_SIZE], range[64];

	if ((check_get(verdict->world->config, "MpiParams", value,
		       sizeof(value)) &&
	     strstr(value, "ports=")) ||
	    !check_fact(node, "port_range", value, sizeof(value)) ||
	    sscanf(value, "%lu-%lu", &first, &last) != 2)
		return;
	other = find_range(verdict->world, range, sizeof(range));
	if (other && strcmp(value, range) != 0)
		check_say(verdict, CHECK_WRONG, "%lu-%lu, and %s on %s: ranks "
			  "of a step on both get different MASTER_PORTs, and "
			  "do not meet; have one port-range= in plugstack.conf "
			  "on all nodes", first, last, range, other->name);
	else if (has_ephemeral(node, first, last, &low, &high))
		check_say(verdict, CHECK_ADVICE, "the kernel gives ports "
			  "%lu-%lu to any connection, so some of port-range="
			  "%lu-%lu can be taken when a step starts; keep them "
			  "apart, by port-range= in plugstack.conf or sysctl "
			  "net.ipv4.ip_local_port_range, or set MpiParams="
			  "ports=12000-12999 in slurm.conf", low, high, first,
			  last);
}

/* ---- names, and folders that must be each node's own */

static void judge_names(const struct check_node *node,
			struct check_verdict *verdict)
{
	char unresolved[512], loopback[512], count[32];

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

static void judge_interface(const struct check_node *node,
			    struct check_verdict *verdict)
{
	char flaw[256];

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

static void judge_folder(const struct check_node *node,
			 struct check_verdict *verdict, const char *fact,
			 const char *key)
{
	char own[256], flaw[512], name[64];

	snprintf(name, sizeof(name), "%s_flaw", fact);
	if (node->here)
		return;
	if (check_fact(node, name, flaw, sizeof(flaw)))
		check_say(verdict, CHECK_UNKNOWN, "%.400s", flaw);
	else if (!check_fact(node, fact, own, sizeof(own)))
		check_say(verdict, CHECK_UNKNOWN, "cannot be examined there");
	else if (find_sharer(verdict->world, node, fact, own))
		check_say(verdict, CHECK_WRONG, "nodes share this folder, in "
			  "which mpi/pmix needs names of its own: put it on a "
			  "local disk, or %%n into %s in slurm.conf", key);
	else
		check_say(verdict, CHECK_OK, "each node's own");
}

static void judge_spool(const struct check_node *node,
			struct check_verdict *verdict)
{
	judge_folder(node, verdict, "spool", "SlurmdSpoolDir");
}

static void judge_tmp(const struct check_node *node,
		      struct check_verdict *verdict)
{
	judge_folder(node, verdict, "tmp", "TmpFS");
}

/* nvd.nist.gov, CVE-2026-25506: munged of before 0.5.18 overflows. */
static void judge_munge(const struct check_node *node,
			struct check_verdict *verdict)
{
	char version[64];

	if (check_fact(node, "munge", version, sizeof(version)) &&
	    check_compare_versions(version, "0.5.18") < 0)
		check_say(verdict, CHECK_ADVICE, "%s has the vulnerability "
			  "CVE-2026-25506, unless your distribution has "
			  "mended it: install 0.5.18 or later", version);
}

/* ---- all of it */

/* Nodes that say nothing, whatever was asked. */
static void check_silence(struct check *out, const struct check_world *world)
{
	size_t i;

	for (i = 0; i < world->count; i++)
		if (!world->nodes[i].facts)
			check_add(out, CHECK_WRONG, "answer", "%s: ddp-info "
				  "could not examine it: %s; look into "
				  "slurmd's log there", world->nodes[i].name,
				  world->nodes[i].problem ?
				  world->nodes[i].problem :
				  "it did not answer");
}

static const struct {
	const char *what;
	check_judge *judge;
} judges[] = {
	{ "limits", judge_nofile },
	{ "limits", judge_memlock },
	{ "shared memory", judge_shm },
	{ "clock", judge_clock },
	{ "MpiParams", judge_ports },
	{ "port-range", judge_range },
	{ "names", judge_names },
	{ "interface", judge_interface },
	{ "SlurmdSpoolDir", judge_spool },
	{ "TmpFS", judge_tmp },
	{ "munge", judge_munge },
};

void check_nodes(struct check *out, const struct check_world *world)
{
	size_t i;

	check_silence(out, world);
	check_plugin(out, world);
	for (i = 0; i < sizeof(sames) / sizeof(sames[0]); i++)
		check_same(out, world, &sames[i]);
	for (i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		check_each(out, world, judges[i].what, judges[i].judge);
}
