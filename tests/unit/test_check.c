/* SPDX-License-Identifier: BSD-3-Clause */
/* What ddp-info --doctor finds in Slurm's configuration. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* A configuration in which nothing is to be said, as 22.05 prints it. */
static const char sound[] =
	"Configuration data as of 2026-11-23T08:04:06\n"
	"GresTypes               = gpu\n"
	"KillOnBadExit           = 1\n"
	"MpiParams               = ports=12000-12999\n"
	"ProctrackType           = proctrack/cgroup\n"
	"SLURM_VERSION           = 22.05.8\n"
	"SrunPortRange           = 0-0\n"
	"TaskPlugin              = task/affinity,task/cgroup\n"
	"\n"
	"Cgroup Support Configuration:\n"
	"ConstrainCores          = yes\n"
	"ConstrainDevices        = yes\n";
static const char nodes[] =
	"NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUTot=64 Version=22.05.8 OS=L\n"
	"NodeName=n2 Arch=x86_64 CPUAlloc=0 CPUTot=128 Version=22.05.8 OS=L\n";

/* Changes the lines of a text that begin with a name; the caller frees it. */
static char *change(const char *text, const char *name, const char *line)
{
	char *changed = calloc(1, strlen(text) + strlen(line) + 2);
	size_t length;

	cr_assert(changed);
	for (; *text; text += length) {
		length = strcspn(text, "\n") + 1;
		if (strncmp(text, name, strlen(name)) == 0)
			strcat(strcat(changed, line), *line ? "\n" : "");
		else
			strncat(changed, text, length);
	}
	return changed;
}

Test(check, a_sound_configuration_is_all_ok)
{
	struct check out = { .counts = { 0 } };

	check_config(&out, sound, nodes);
	check_end(&out);
	cr_expect_str_eq(out.text.data,
"ok      Slurm: 22.05.8, on 2 nodes too\n"
"ok      KillOnBadExit: 1\n"
"ok      MpiParams: ports=12000-12999\n"
"ok      SrunPortRange: none: srun takes any free port (compute nodes must "
"reach all of them)\n"
"ok      ProctrackType: proctrack/cgroup\n"
"ok      ConstrainCores: yes\n"
"ok      ConstrainDevices: yes\n"
"ok      TaskPlugin: task/affinity,task/cgroup\n"
"0 wrong, 0 advice, 0 unknown, 8 ok\n", "%s", out.text.data);
	free(out.text.data);
}

/* Each changes one line, and changes one finding. A step of n2 with a task for
 * each of its 128 CPUs reserves 129 ports; 128 steps of one task 256. */
static const struct {
	const char *name, *line;
	enum check_level level;
	const char *found, *fix;
} faults[] = {
	{ "KillOnBadExit", "KillOnBadExit = 0", CHECK_ADVICE,
	  "advice  KillOnBadExit: 0:", "KillOnBadExit=1 in slurm.conf" },
	{ "KillOnBadExit", "", CHECK_UNKNOWN,
	  "unknown KillOnBadExit: scontrol does not tell it", "" },
	{ "MpiParams", "MpiParams = (null)", CHECK_ADVICE,
	  "advice  MpiParams: no ports:", "MpiParams=ports=12000-12999" },
	{ "MpiParams", "MpiParams = ports=12000-12127", CHECK_WRONG,
	  "WRONG   MpiParams: ports=12000-12127 are 128 ports, and a step with "
	  "a task for each of the 128 CPUs of n2 needs 129",
	  "MpiParams=ports=12000-12999" },
	{ "MpiParams", "MpiParams = ports=12000-12128", CHECK_ADVICE,
	  "advice  MpiParams: ports=12000-12128 are 129 ports, too few for "
	  "many small steps at once on the 128 CPUs of n2, which can need 256",
	  "MpiParams=ports=12000-12999" },
	{ "MpiParams", "MpiParams = ports=12000-12255", CHECK_OK,
	  "ok      MpiParams: ports=12000-12255", "" },
	{ "MpiParams", "MpiParams = a,ports=12000-12254,b", CHECK_ADVICE,
	  "advice  MpiParams: ports=12000-12254 are 255 ports, too few for",
	  "MpiParams=ports=12000-12999" },
	{ "MpiParams", "MpiParams = ports=12000", CHECK_WRONG,
	  "WRONG   MpiParams: ports=12000 is no range",
	  "MpiParams=ports=12000-12999" },
	{ "MpiParams", "MpiParams = ports=12999-12000", CHECK_WRONG,
	  "WRONG   MpiParams: ports=12999-12000 is no range", "" },
	{ "SrunPortRange", "SrunPortRange = 60001-60004", CHECK_WRONG,
	  "WRONG   SrunPortRange: 60001-60004 are 4 ports, and one srun on "
	  "all nodes needs 5", "SrunPortRange=60001-63000" },
	{ "SrunPortRange", "SrunPortRange = 60001-60010", CHECK_ADVICE,
	  "advice  SrunPortRange: 60001-60010 are 10 ports, enough for 2 sruns "
	  "at once", "SrunPortRange=60001-63000" },
	{ "SrunPortRange", "SrunPortRange = 60001-61000", CHECK_OK,
	  "ok      SrunPortRange: 60001-61000", "" },
	{ "ProctrackType", "ProctrackType = proctrack/linuxproc", CHECK_ADVICE,
	  "advice  ProctrackType: proctrack/linuxproc:",
	  "ProctrackType=proctrack/cgroup in slurm.conf" },
	{ "TaskPlugin", "TaskPlugin = task/affinity", CHECK_ADVICE,
	  "advice  TaskPlugin: task/affinity lacks task/cgroup",
	  "TaskPlugin=task/affinity,task/cgroup in slurm.conf" },
	{ "TaskPlugin", "TaskPlugin = (null)", CHECK_ADVICE,
	  "advice  TaskPlugin: what is set lacks task/cgroup", "" },
	{ "ConstrainCores", "ConstrainCores = no", CHECK_ADVICE,
	  "advice  ConstrainCores: no:", "ConstrainCores=yes in cgroup.conf" },
	{ "ConstrainDevices", "ConstrainDevices = no", CHECK_ADVICE,
	  "advice  ConstrainDevices: no:",
	  "ConstrainDevices=yes in cgroup.conf" },
	/* Without a cgroup.conf */
	{ "ConstrainDevices", "", CHECK_UNKNOWN,
	  "unknown ConstrainDevices: scontrol does not tell it", "" },
	{ "SLURM_VERSION", "SLURM_VERSION = 23.11.4", CHECK_WRONG,
	  "WRONG   Slurm: slurmctld is of 23.11.4, and slurmd of another "
	  "version on n1, n2;", "install one version" },
};

Test(check, each_fault_is_named_with_its_fix)
{
	struct check out;
	char *config;
	size_t i;

	for (i = 0; i < ROWS(faults); i++) {
		memset(&out, 0, sizeof(out));
		config = change(sound, faults[i].name, faults[i].line);
		check_config(&out, config, nodes);
		cr_expect(strstr(out.text.data, faults[i].found), "%s: %s",
			  faults[i].found, out.text.data);
		cr_expect(strstr(out.text.data, faults[i].fix), "%s",
			  faults[i].fix);
		cr_expect_eq(out.counts[faults[i].level],
			     faults[i].level == CHECK_OK ? 8 : 1, "%s",
			     faults[i].found);
		cr_expect_eq(out.counts[CHECK_OK],
			     faults[i].level == CHECK_OK ? 8 : 7, "%s",
			     faults[i].found);
		free(out.text.data);
		free(config);
	}
}

/* 200 nodes: an srun listens on 5 ports and 2 for each 48 hosts beyond. */
Test(check, srun_of_many_nodes_needs_more_ports)
{
	char *many = calloc(200, 32), *config;
	struct check out = { .counts = { 0 } };
	int i;

	for (i = 0; i < 200; i++)
		sprintf(many + strlen(many), "NodeName=n%d CPUTot=4\n", i);
	config = change(sound, "SrunPortRange", "SrunPortRange = 60001-60012");
	check_config(&out, config, many);
	cr_expect(strstr(out.text.data, "WRONG   SrunPortRange: 60001-60012 "
			 "are 12 ports, and one srun on all nodes needs 13"),
		  "%s", out.text.data);
	free(out.text.data);
	free(config);
	free(many);
}

Test(check, ports_for_large_nodes_are_more_than_a_thousand)
{
	char *config = change(sound, "MpiParams", "MpiParams = (null)");
	struct check out = { .counts = { 0 } };

	check_config(&out, config, "NodeName=n1 CPUTot=768\n");
	cr_expect(strstr(out.text.data, "set MpiParams=ports=12000-13535 in"),
		  "%s", out.text.data);
	free(out.text.data);
	free(config);
}

Test(check, what_slurmctld_does_not_tell_is_not_good)
{
	struct check out = { .counts = { 0 } };

	check_config(&out, sound, NULL);
	cr_expect_eq(out.counts[CHECK_UNKNOWN], 2, "%s", out.text.data);
	cr_expect(strstr(out.text.data, "unknown Slurm: 22.05.8; scontrol "
			 "show nodes tells of no node"));
	cr_expect(strstr(out.text.data, "unknown MpiParams: ports=12000-12999: "
			 "scontrol tells of no node"));
	free(out.text.data);
	memset(&out, 0, sizeof(out));
	check_config(&out, sound, "NodeName=n1 CPUTot=4 State=DOWN\n");
	cr_expect(strstr(out.text.data, "unknown Slurm: the slurmd of n1 does "
			 "not tell its version"), "%s", out.text.data);
	free(out.text.data);
}

/* Without GPUs there are no devices to constrain. */
Test(check, devices_matter_with_gpus)
{
	char *config = change(sound, "GresTypes", "GresTypes = (null)");
	struct check out = { .counts = { 0 } };

	check_config(&out, config, nodes);
	cr_expect_not(strstr(out.text.data, "ConstrainDevices"));
	cr_expect_eq(out.counts[CHECK_OK], 7);
	free(out.text.data);
	free(config);
}

Test(check, what_others_wrote_is_made_printable)
{
	struct check out = { .counts = { 0 } };

	check_add(&out, CHECK_WRONG, "a", "b\n\033[31mok c");
	cr_expect_str_eq(out.text.data, "WRONG   a: b??[31mok c\n");
	free(out.text.data);
	memset(&out, 0, sizeof(out));
	out.colour = true;
	check_add(&out, CHECK_WRONG, "a", "b");
	check_add(&out, CHECK_OK, "a", "b");
	cr_expect_str_eq(out.text.data,
			 "\033[31mWRONG   a: b\033[0m\nok      a: b\n");
	free(out.text.data);
}

Test(check, versions_compare_by_number)
{
	static const struct {
		const char *a, *b;
		int wanted;
	} table[] = {
		{ "22.05.8", "22.05.8", 0 }, { "22.05.8", "22.05.10", -1 },
		{ "22.05", "22.05.0", 0 }, { "25.11.7", "25.11.6", 1 },
		{ "4.2.2rc2", "4.2.2", 0 }, { "5.0.10", "5.0.9", 1 },
		{ "26.05.0-0rc1", "26.05.2", -1 }, { "3.2", "3.10", -1 },
		{ "", "0", 0 },
	};
	size_t i;

	for (i = 0; i < ROWS(table); i++) {
		cr_expect_eq(check_compare_versions(table[i].a, table[i].b),
			     table[i].wanted, "%s %s", table[i].a, table[i].b);
		cr_expect_eq(check_compare_versions(table[i].b, table[i].a),
			     -table[i].wanted, "%s %s", table[i].b, table[i].a);
	}
}

/* As Slurm's plugstack.c reads a line. */
Test(check, lines_of_plugstack)
{
	static const struct {
		const char *line;
		enum check_stack kind;
		const char *path;
		bool required;
	} table[] = {
		{ "", CHECK_STACK_OTHER, "", false },
		{ "# optional spank_ddp.so\n", CHECK_STACK_OTHER, "", false },
		{ "optional", CHECK_STACK_OTHER, "", false },
		{ "optional #spank_ddp.so", CHECK_STACK_OTHER, "", false },
		{ "optional spank_ddp.so\n", CHECK_STACK_PLUGIN,
		  "spank_ddp.so", false },
		{ "\toptional\t/a/spank_ddp.so mpi=keep # b",
		  CHECK_STACK_PLUGIN, "/a/spank_ddp.so", false },
		{ "required /a/spank_ddp.so#b", CHECK_STACK_PLUGIN,
		  "/a/spank_ddp.so", true },
		{ "required /a/spank_ddp.so.old", CHECK_STACK_OTHER, "", true },
		{ "required /a/xspank_ddp.so", CHECK_STACK_OTHER, "", true },
		{ "Required spank_ddp.so", CHECK_STACK_OTHER, "", false },
		{ "include plugstack.conf.d/*.conf", CHECK_STACK_INCLUDE,
		  "plugstack.conf.d/*.conf", false },
	};
	char path[CHECK_VALUE_SIZE];
	const char *line;
	bool required;
	size_t i;

	for (i = 0; i < ROWS(table); i++) {
		required = false;
		line = table[i].line;
		cr_expect_eq(check_stack_line(&line, path, &required),
			     table[i].kind, "%s", table[i].line);
		if (table[i].kind == CHECK_STACK_OTHER)
			continue;
		cr_expect_str_eq(path, table[i].path);
		cr_expect_eq(required, table[i].required);
	}
}

Test(check, arguments_end_with_the_line_or_a_comment)
{
	static const char *const words[] = { "mpi=keep", "env=A=1" };
	const char *line = "required a/spank_ddp.so\tmpi=keep  env=A=1# b=c\n";
	char word[CHECK_VALUE_SIZE], small[8];
	const char *plain = "mpi=keep";
	bool required;
	size_t i;

	cr_assert_eq(check_stack_line(&line, word, &required),
		     CHECK_STACK_PLUGIN);
	for (i = 0; i < ROWS(words); i++) {
		cr_assert(check_stack_argument(&line, word, sizeof(word)));
		cr_expect_str_eq(word, words[i]);
	}
	cr_expect_not(check_stack_argument(&line, word, sizeof(word)));
	cr_expect_not(check_stack_argument(&plain, small, sizeof(small)));
}
