/* SPDX-License-Identifier: BSD-3-Clause */
/* What ddp-info --doctor finds in the facts of nodes. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const char config[] =
	"MpiParams               = ports=12000-12999\n"
	"PropagateResourceLimits = ALL\n"
	"PropagateResourceLimitsExcept = (null)\n"
	"SLURM_VERSION           = 26.05.3\n";

/* A node of which nothing is to be said; %s is its name. */
static const char sound[] =
	"clock 1000.500\n"
	"stack /etc/slurm/plugstack.conf\n"
	"plugin_lines 1\n"
	"plugin /usr/lib/slurm/spank_ddp.so\n"
	"plugin_version 0.1.0\n"
	"ddp 0.1.0\n"
	"pmix 5.0.7\n"
	"nccl 2.28.9\n"
	"driver 570.86\n"
	"cgroup v2\n"
	"nofile 65536\n"
	"memlock unlimited\n"
	"rdma yes\n"
	"shm 1073741824\n"
	"ports 32768-60999\n"
	"names 2\n"
	"spool %s-1\n"
	"tmp %s-2\n"
	"rank 0\n"
	"pmix_server 5.0.7\n"
	"met yes\n";

static const char partitions[] =
	"PartitionName=main AllowGroups=ALL Default=YES\n"
	"PartitionName=fast AllowGroups=ALL Default=NO\n";

enum { COUNT = 4 };

static struct check_node nodes[COUNT];
static char *facts[COUNT];

static void make_nodes(void)
{
	static const char *const names[COUNT] = { "login", "n1", "n2", "n3" };
	size_t i;

	for (i = 0; i < COUNT; i++) {
		facts[i] = calloc(1, 8192);
		cr_assert(facts[i]);
		if (i > 0)
			sprintf(facts[i], sound, names[i], names[i]);
		else
			strcpy(facts[i], "ddp 0.1.0\nnofile 65536\n"
			       "stack /etc/slurm/plugstack.conf\n"
			       "plugin_lines 1\n"
			       "plugin /usr/lib/slurm/spank_ddp.so\n"
			       "plugin_version 0.1.0\n");
		nodes[i] = (struct check_node){
			.name = names[i], .facts = facts[i], .here = i == 0,
			.after = i > 0 ? 1000 : 0, .before = i > 0 ? 1001 : 0,
		};
	}
}

static void free_nodes(void)
{
	size_t i;

	for (i = 0; i < COUNT; i++)
		free(facts[i]);
}

/* Replaces a node's fact, or leaves it out (line ""). */
static void change(size_t node, const char *name, const char *line)
{
	char *at = facts[node], *end;

	while (*at && (strncmp(at, name, strlen(name)) != 0 ||
		       at[strlen(name)] != ' '))
		at += strcspn(at, "\n") + 1;
	end = at + strcspn(at, "\n");
	end += *end != '\0';
	memmove(at, end, strlen(end) + 1);
	if (*line)
		strcat(strcat(facts[node], line), "\n");
}

static char *examine(unsigned counts[CHECK_LEVELS], const char *settings)
{
	struct check_world world = {
		.config = settings, .partitions = partitions,
		.version = "0.1.0", .nodes = nodes, .count = COUNT,
	};
	struct check out = { .counts = { 0 } };

	check_nodes(&out, &world);
	memcpy(counts, out.counts, sizeof(out.counts));
	return ddp_text_finish(&out.text);
}

Test(check_nodes, sound_ones_are_all_ok, .init = make_nodes,
     .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text = examine(counts, config);

	cr_expect_str_eq(text,
"ok      spank_ddp.so: login, n1, n2, n3: 0.1.0, in /etc/slurm/plugstack.conf\n"
"ok      srun --ddp: n1, n2, n3: gives ranks\n"
"ok      PMIx: n1, n2, n3: ranks met\n"
"ok      slurm-ddp: 0.1.0 on login, n1, n2, n3\n"
"ok      PMIx: 5.0.7 on n1, n2, n3\n"
"ok      NCCL: 2.28.9 on n1, n2, n3\n"
"ok      NVIDIA driver: 570.86 on n1, n2, n3\n"
"ok      cgroups: v2 on n1, n2, n3\n"
"ok      limits: login, n1, n2, n3: nofile 65536\n"
"ok      limits: n1, n2, n3: memlock unlimited\n"
"ok      shared memory: n1, n2, n3: /dev/shm has 1 GiB or more\n"
"ok      clock: n1, n2, n3: as this machine's\n"
"ok      names: n1, n2, n3: resolves 2 other names\n"
"ok      SlurmdSpoolDir: n1, n2, n3: each node's own\n"
"ok      TmpFS: n1, n2, n3: each node's own\n", "%s", text);
	cr_expect_eq(counts[CHECK_OK], 15);
	free(text);
}

/* Each changes one fact of n2 (or of login), and adds one finding. */
static const struct {
	size_t node;
	const char *name, *line;
	enum check_level level;
	const char *found, *fix;
} faults[] = {
	{ 2, "plugin_lines", "plugin_lines 0", CHECK_WRONG,
	  "WRONG   spank_ddp.so: n2: no line of /etc/slurm/plugstack.conf",
	  "add \"optional spank_ddp.so\"" },
	{ 2, "plugin_version", "plugin_flaw No such file or directory",
	  CHECK_WRONG, "WRONG   spank_ddp.so: n2: /etc/slurm/plugstack.conf "
	  "names /usr/lib/slurm/spank_ddp.so: No such file or directory",
	  "install slurm-ddp there" },
	{ 2, "plugin_version", "plugin_version 0.0.9", CHECK_WRONG,
	  "WRONG   spank_ddp.so: n2: /usr/lib/slurm/spank_ddp.so is of "
	  "slurm-ddp 0.0.9, and this ddp-info of 0.1.0",
	  "install one version on all nodes" },
	{ 2, "plugin_version", "", CHECK_WRONG, "does not tell its version",
	  "install one version on all nodes" },
	{ 0, "plugin", "plugin /x\nplugin_required yes", CHECK_ADVICE,
	  "advice  spank_ddp.so: login: /etc/slurm/plugstack.conf says "
	  "\"required\"", "write \"optional\"" },
	{ 2, "stack", "stack /c\nstack_flaw Permission denied", CHECK_UNKNOWN,
	  "unknown spank_ddp.so: n2: /c cannot be read: Permission denied",
	  "let users read it" },
	{ 2, "stack", "", CHECK_UNKNOWN, "unknown spank_ddp.so: n2: scontrol "
	  "does not tell", "" },
	{ 2, "plugin", "plugin /x\nargument_flaw plugstack.conf: a: b",
	  CHECK_WRONG, "WRONG   srun --ddp: n2: refuses every step: "
	  "plugstack.conf: a: b\n", "" },
	{ 0, "plugin", "plugin /x\npartitions partition=fast allow=gpu "
	  "deny=main deny=Main", CHECK_WRONG, "WRONG   plugstack.conf: login: "
	  "allow=gpu, deny=Main: Slurm has no such partition",
	  "correct the name" },
	{ 0, "plugin", "plugin /x\ngroups_lacking allow=@pilots deny=@x",
	  CHECK_WRONG, "WRONG   plugstack.conf: login: allow=@pilots deny=@x:"
	  " there is no such group on this machine", "correct the name" },
	{ 2, "plugin", "plugin /x\ninterface_lacking ib9", CHECK_WRONG,
	  "WRONG   plugstack.conf: n2: interface=ib9: there is no such network",
	  "give one that the node has" },
	{ 2, "rank", "refused slurm-ddp: a", CHECK_WRONG,
	  "WRONG   srun --ddp: n2: refuses a step: slurm-ddp: a\n", "" },
	{ 2, "rank", "rank slurm-ddp-plugin-missing", CHECK_WRONG,
	  "WRONG   srun --ddp: n2: the plugin did nothing", "install" },
	{ 2, "rank", "rank 1\nunwatched yes", CHECK_WRONG,
	  "WRONG   srun --ddp: n2: gives ranks, but nobody can watch them",
	  "run srun --ddp there" },
	{ 2, "met", "meet_flaw no PMIx", CHECK_WRONG,
	  "WRONG   PMIx: n2: ranks did not meet: no PMIx; look into",
	  "slurmd's log there" },
	{ 2, "met", "meet_unknown denied", CHECK_UNKNOWN,
	  "unknown PMIx: n2: denied", "" },
	{ 2, "met", "met yes\npmix_security munge,native", CHECK_ADVICE,
	  "advice  PMIx: n2: its PMIx wants munge", "PMIX_MCA_psec=^munge" },
	{ 2, "pmix_server", "pmix_server 4.2.2", CHECK_ADVICE,
	  "advice  PMIx: n2: Slurm has PMIx 4.2.2, and programs find 5.0.7",
	  "" },
	{ 2, "ddp", "ddp 0.0.9", CHECK_WRONG,
	  "WRONG   slurm-ddp: 0.1.0 on login, n1, n3; 0.0.9 on n2",
	  "install one version" },
	{ 2, "pmix", "pmix 5.0.6", CHECK_WRONG,
	  "WRONG   PMIx: 5.0.7 on n1, n3; 5.0.6 on n2",
	  "install one version" },
	{ 1, "nccl", "", CHECK_WRONG,
	  "WRONG   NCCL: none on n1; 2.28.9 on n2, n3",
	  "install one version" },
	{ 3, "driver", "driver 550.1", CHECK_WRONG,
	  "WRONG   NVIDIA driver: 570.86 on n1, n2; 550.1 on n3",
	  "install one version" },
	{ 2, "cgroup", "cgroup v1", CHECK_WRONG,
	  "WRONG   cgroups: v2 on n1, n3; v1 on n2", "boot the nodes" },
	{ 2, "nofile", "nofile 1024", CHECK_WRONG,
	  "WRONG   limits: n2: nofile is 1024",
	  "raise it to 65536 where jobs are submitted" },
	{ 2, "memlock", "memlock 8388608", CHECK_WRONG,
	  "WRONG   limits: n2: memlock is 8 MiB",
	  "make it unlimited where jobs are submitted" },
	{ 2, "shm", "shm 67108864", CHECK_WRONG,
	  "WRONG   shared memory: n2: /dev/shm has 64 MiB",
	  "mount -o remount,size=50% /dev/shm" },
	{ 2, "shm", "shm_flaw Permission denied", CHECK_WRONG,
	  "WRONG   shared memory: n2: /dev/shm: Permission denied",
	  "mount a tmpfs" },
	{ 2, "shm", "shm 1073741824\nshm_free 106954752", CHECK_ADVICE,
	  "advice  shared memory: n2: /dev/shm has 102 of 1024 MiB free",
	  "remove what ended jobs have left there" },
	{ 2, "clock", "clock 1032.000", CHECK_WRONG,
	  "WRONG   clock: n2: its clock is 31 s ahead of this machine's",
	  "start chronyd" },
	{ 2, "clock", "clock 970.000", CHECK_WRONG,
	  "WRONG   clock: n2: its clock is 30 s behind this machine's",
	  "start chronyd" },
	{ 2, "ports", "ports 10000-60999", CHECK_ADVICE,
	  "advice  MpiParams: n2: the kernel gives ports 10000-60999 to any "
	  "connection, so some of ports=12000-12999",
	  "MpiParams=ports=12000-12999" },
	{ 2, "names", "names 2\nunresolved n1, n3", CHECK_WRONG,
	  "WRONG   names: n2: cannot resolve n1, n3", "/etc/hosts" },
	{ 2, "names", "names 2\nloopback login", CHECK_WRONG,
	  "WRONG   names: n2: takes login for itself", "correct /etc/hosts" },
	{ 2, "names", "names 2\nnames_flaw resolved only 1 of 3",
	  CHECK_UNKNOWN, "unknown names: n2: resolved only 1 of 3", "" },
	{ 2, "interface_flaw", "interface_flaw GLOO_SOCKET_IFNAME=eth9",
	  CHECK_WRONG, "WRONG   interface: n2: there is no network interface for "
	  "your GLOO_SOCKET_IFNAME=eth9", "unset that" },
	{ 2, "spool", "spool_flaw /s: Permission denied", CHECK_UNKNOWN,
	  "unknown SlurmdSpoolDir: n2: /s: Permission denied", "" },
};

Test(check_nodes, each_fault_is_named_with_its_fix)
{
	unsigned counts[CHECK_LEVELS];
	char *text;
	size_t i;

	for (i = 0; i < ROWS(faults); i++) {
		make_nodes();
		change(faults[i].node, faults[i].name, faults[i].line);
		text = examine(counts, config);
		cr_expect(strstr(text, faults[i].found), "%s: %s",
			  faults[i].found, text);
		cr_expect(strstr(text, faults[i].fix), "%s: %s", faults[i].fix,
			  text);
		cr_expect_eq(counts[faults[i].level], 1, "%s: %s",
			     faults[i].found, text);
		cr_expect_eq(counts[CHECK_WRONG] + counts[CHECK_ADVICE] +
			     counts[CHECK_UNKNOWN], 1, "%s", text);
		free(text);
		free_nodes();
	}
}

Test(check_nodes, arguments_that_are_known_are_ok, .init = make_nodes,
     .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text;

	change(0, "plugin", "plugin /x\narguments 2\n"
	       "partitions partition=fast partition=main");
	text = examine(counts, config);
	cr_expect(strstr(text, "ok      srun --ddp: login: knows its keys "
			 "and values in plugstack.conf\n"), "%s", text);
	cr_expect_eq(counts[CHECK_OK], 16, "%s", text);
	free(text);
}

/* PrivateData hides them, or slurmctld does not answer. */
Test(check_nodes, partitions_that_nobody_tells_are_not_compared,
     .init = make_nodes, .fini = free_nodes)
{
	static const char *const nothing[] = {
		NULL, "No partitions in the system\n"
	};
	struct check_world world = {
		.config = config, .version = "0.1.0", .nodes = nodes,
		.count = COUNT,
	};
	size_t i;

	change(0, "plugin", "plugin /x\npartitions allow=gpu");
	for (i = 0; i < ROWS(nothing); i++) {
		struct check out = { .counts = { 0 } };

		world.partitions = nothing[i];
		check_nodes(&out, &world);
		cr_expect(strstr(out.text.data, "unknown plugstack.conf: login:"
				 " scontrol tells of no partition that its "
				 "allow=gpu could be compared with"), "%s",
			  out.text.data);
		cr_expect_eq(out.counts[CHECK_WRONG], 0);
		free(out.text.data);
	}
}

/* A port is computed, and tried on compute nodes, where Slurm reserves none. */
Test(check_nodes, computed_ports_are_not_the_kernels)
{
	static const struct {
		size_t node;
		const char *range, *kernels, *settings;
		bool told;
	} table[] = {
		{ 2, "21000-28999", "10000-60999", "", true },
		{ 2, "21000-32767", "32768-60999", "", false },
		{ 2, "21000-32768", "32768-60999", "", true },
		{ 2, "60999-61999", "32768-60999", "", true },
		{ 2, "61000-61999", "32768-60999", "", false },
		{ 2, "21000-28999", "10000-60999", "MpiParams = a\n", true },
		{ 2, "21000-28999", "10000-60999",
		  "MpiParams = ports=2000-2999\n", false },
		{ 0, "21000-28999", "10000-60999", "", false },
	};
	unsigned counts[CHECK_LEVELS];
	char line[128], *text;
	size_t i;

	for (i = 0; i < ROWS(table); i++) {
		make_nodes();
		snprintf(line, sizeof(line), "plugin /x\nports %s\n"
			 "port_range %s", table[i].kernels, table[i].range);
		change(table[i].node, "ports", "");
		change(table[i].node, "plugin", line);
		text = examine(counts, table[i].settings);
		snprintf(line, sizeof(line), "advice  port-range: n2: the "
			 "kernel gives ports %s to any connection, so some of "
			 "port-range=%s can", table[i].kernels, table[i].range);
		cr_expect_eq(strstr(text, line) != NULL, table[i].told,
			     "%zu: %s", i, text);
		cr_expect_eq(counts[CHECK_ADVICE], table[i].told, "%zu", i);
		free(text);
		free_nodes();
	}
}

Test(check_nodes, nodes_compute_one_port_where_slurm_reserves_none)
{
	static const struct {
		const char *range, *settings;
		unsigned wrong;
	} table[] = {
		{ "21000-28999", "", 0 }, { "21000-29000", "", 1 },
		{ "21000-29000", "MpiParams = ports=2000-2999\n", 0 },
	};
	unsigned counts[CHECK_LEVELS];
	char line[128], *text;
	size_t i;

	for (i = 0; i < ROWS(table); i++) {
		make_nodes();
		change(1, "plugin", "plugin /x\nport_range 21000-28999");
		snprintf(line, sizeof(line), "plugin /x\nport_range %s",
			 table[i].range);
		change(2, "plugin", line);
		change(3, "plugin", line);
		text = examine(counts, table[i].settings);
		cr_expect_eq(counts[CHECK_WRONG], table[i].wrong, "%s", text);
		cr_expect_eq(strstr(text, "WRONG   port-range: n2, n3: "
				    "21000-29000, and 21000-28999 on n1: ranks") !=
			     NULL, table[i].wrong > 0, "%s", text);
		free(text);
		free_nodes();
	}
}

Test(check_nodes, one_name_is_no_plural,
     .init = make_nodes, .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text;

	change(2, "names", "names 1");
	text = examine(counts, config);
	cr_expect(strstr(text, "names: n2: resolves 1 other name\n"), "%s",
		  text);
	free(text);
}

Test(check_nodes, a_shared_folder_is_named_on_all_that_share_it,
     .init = make_nodes, .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text;

	change(1, "spool", "spool x");
	change(3, "spool", "spool x");
	text = examine(counts, config);
	cr_expect(strstr(text, "WRONG   SlurmdSpoolDir: n1, n3: nodes share "
			 "this folder"), "%s", text);
	cr_expect(strstr(text, "%n into SlurmdSpoolDir in slurm.conf"));
	cr_expect(strstr(text, "ok      SlurmdSpoolDir: n2: each node's own"));
	free(text);
}

Test(check_nodes, one_without_an_answer_is_wrong, .init = make_nodes,
     .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text;

	nodes[2].facts = NULL;
	nodes[2].problem = "srun: error: a";
	text = examine(counts, config);
	cr_expect(strstr(text, "WRONG   answer: n2: ddp-info could not examine "
			 "it: srun: error: a;"), "%s", text);
	cr_expect_eq(counts[CHECK_WRONG], 1);
	cr_expect(strstr(text, "ok      names: n1, n3: "));
	free(text);
}

/* Memory need not be registered without InfiniBand. */
Test(check_nodes, memlock_matters_with_infiniband, .init = make_nodes,
     .fini = free_nodes)
{
	unsigned counts[CHECK_LEVELS];
	char *text;

	change(2, "memlock", "memlock 8388608");
	change(2, "rdma", "");
	text = examine(counts, config);
	cr_expect(strstr(text, "ok      limits: n2: memlock 8 MiB, and no "
			 "InfiniBand"), "%s", text);
	cr_expect_eq(counts[CHECK_WRONG], 0);
	free(text);
}

/* Where a limit is raised depends on whose it is. */
Test(check_nodes, limits_are_raised_where_they_come_from, .init = make_nodes,
     .fini = free_nodes)
{
	static const struct {
		const char *settings;
		bool service;
	} table[] = {
		{ "PropagateResourceLimits = ALL\n", false },
		{ "PropagateResourceLimits = NOFILE,AS\n", false },
		{ "PropagateResourceLimits = AS\n", true },
		{ "PropagateResourceLimits = NONE\n", true },
		{ "PropagateResourceLimits = (null)\n"
		  "PropagateResourceLimitsExcept = MEMLOCK,NOFILE\n", true },
		{ "PropagateResourceLimitsExcept = MEMLOCK\n", false },
	};
	unsigned counts[CHECK_LEVELS];
	char *text;
	size_t i;

	change(2, "nofile", "nofile 1024");
	for (i = 0; i < ROWS(table); i++) {
		text = examine(counts, table[i].settings);
		cr_expect(strstr(text, table[i].service ?
				 "to 65536 in slurmd's service there\n" :
				 "to 65536 where jobs are submitted"), "%s: %s",
			  table[i].settings, text);
		free(text);
	}
}

Test(check_nodes, known_faults, .init = make_nodes, .fini = free_nodes)
{
	static const struct {
		const char *slurm, *pmix;
		bool hangs, fails;	/* large steps */
		const char *also;
	} table[] = {
		{ "22.05.8", "4.2.2rc2", false, true,
		  "advice  Slurm: login: in Slurm 22.05.8 some steps hang instead "
		  "of running (mended in 22.05.9)\n" },
		{ "22.05.9", "3.1.5", false, false, NULL },
		{ "23.02.2", "4.2.2", false, true,
		  "PMIx: n1, n2, n3: in Slurm 23.02.2 with PMIx 4.2.2 a step on "
		  "more nodes than TreeWidth ends slurmstepd (mended in 23.02.4); "
		  "steps with very many tasks fail to start (mended in "
		  "25.11.7)\n" },
		{ "23.02.2", "4.2.2", false, true, "--cpus-per-gpu" },
		{ "25.05.3", "5.0.7", false, true, "when a step is cancelled" },
		{ "25.05.4", "5.0.7", false, true, NULL },
		{ "25.11.1", "5.0.8", true, true, NULL },
		{ "25.11.1", "5.0.10", false, true, NULL },
		{ "25.11.2", "5.0.9", false, true, NULL },
		{ "25.11.6", "3.2.0", false, true, NULL },
		{ "25.11.7", "5.0.9", false, false, NULL },
		{ "26.05.1", "5.0.9", false, true,
		  "srun can hang when its step has ended" },
		{ "26.05.3", "5.0.9", false, false, NULL },
	};
	char settings[64], *text;
	unsigned counts[CHECK_LEVELS];
	size_t i, k;

	for (i = 0; i < ROWS(table); i++) {
		snprintf(settings, sizeof(settings), "SLURM_VERSION = %s\n",
			 table[i].slurm);
		for (k = 1; k < COUNT; k++) {
			char line[64];

			snprintf(line, sizeof(line), "pmix %s", table[i].pmix);
			change(k, "pmix", line);
			snprintf(line, sizeof(line), "pmix_server %s",
				 table[i].pmix);
			change(k, "pmix_server", line);
		}
		text = examine(counts, settings);
		cr_expect_eq(strstr(text, "hang when they connect") != NULL,
			     table[i].hangs, "%zu: %s", i, text);
		cr_expect_eq(strstr(text, "very many tasks") != NULL,
			     table[i].fails, "%zu: %s", i, text);
		cr_expect(!table[i].also || strstr(text, table[i].also),
			  "%zu: %s", i, text);
		cr_expect(table[i].also || !strstr(text, "Slurm: "), "%zu: %s",
			  i, text);
		free(text);
	}
}

Test(check_nodes, a_vulnerable_munge, .init = make_nodes, .fini = free_nodes)
{
	static const struct {
		const char *fact;
		bool advised;
	} table[] = {
		{ "munge 0.5.15", true }, { "munge 0.5.17", true },
		{ "munge 0.5.18", false }, { "munge 0.6", false },
	};
	unsigned counts[CHECK_LEVELS];
	char *text;
	size_t i;

	for (i = 0; i < ROWS(table); i++) {
		change(1, "munge", table[i].fact);
		text = examine(counts, "");
		cr_expect_eq(strstr(text, "CVE-2026-25506") != NULL,
			     table[i].advised, "%zu: %s", i, text);
		free(text);
	}
}

/* Of many nodes that are alike only a few are listed. */
Test(check_nodes, groups_are_short)
{
	struct check_group group = { .count = 0 };
	char name[8];
	int i;

	for (i = 1; i <= 64; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		check_group_add(&group, name);
	}
	cr_expect_str_eq(check_group_names(&group),
			 "n1, n2, n3, n4 and 60 more");
}
