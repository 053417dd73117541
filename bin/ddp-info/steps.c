/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the nodes of a job, by two steps with a task on each. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "layout/hostlist.h"
#include "options/site.h"

enum { STEP_MS = 60000 };

/* Tell tasks, by the variable, what they need of the configuration. */
static int set_variable(const char *what, const char *config, const char *here)
{
	static const char *const names[] = {
		"PlugStackConfig", "SLURM_CONF", "PluginDir", "SlurmdSpoolDir",
		"TmpFS",
	};
	char value[CHECK_VALUE_SIZE], *text;
	struct ddp_text all = { 0 };
	size_t i;
	int rc;

	ddp_text_add(&all, "Doctor = %s\nHost = %s\n", what, here);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (check_get(config, names[i], value, sizeof(value)))
			ddp_text_add(&all, "%s = %s\n", names[i], value);
	text = ddp_text_finish(&all);
	rc = text ? setenv(DOCTOR_VARIABLE, text, 1) : -1;
	free(text);
	return rc;
}

/* "ddp-doctor NODE FACT": what else a task prints is not doctor's. */
static void read_fact(void *context, const char *line, double when)
{
	struct doctor_nodes *nodes = context;
	size_t length, i;

	if (strncmp(line, DOCTOR_PREFIX, strlen(DOCTOR_PREFIX)) != 0)
		return;
	line += strlen(DOCTOR_PREFIX);
	length = strcspn(line, " ");
	for (i = 0; i < nodes->count; i++)
		if (!nodes->nodes[i].here &&
		    strlen(nodes->nodes[i].name) == length &&
		    strncmp(nodes->nodes[i].name, line, length) == 0)
			break;
	if (i == nodes->count || !line[length])
		return;
	line += length + 1;
	ddp_text_add(&nodes->facts[i], "%s\n", line);
	if (strncmp(line, "clock ", 6) == 0)
		nodes->nodes[i].before = when;
}

static void run_step(struct doctor_nodes *nodes,
		     struct doctor_program *program, bool with_ddp,
		     size_t count)
{
	char number[32], tasks[32], path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *argv[] = {
		"srun", number, tasks, "--ntasks-per-node=1", "--overlap",
		with_ddp ? "--kill-on-bad-exit=1" : "--kill-on-bad-exit=0",
		"--input=none",
		with_ddp ? "--mpi=pmix" : "--mpi=none",
		NULL, NULL, NULL, NULL, NULL
	};
	size_t last = 8;

	path[length > 0 ? length : 0] = '\0';
	snprintf(number, sizeof(number), "--nodes=%zu", count);
	snprintf(tasks, sizeof(tasks), "--ntasks=%zu", count);
	if (with_ddp) {
		/* A supervisor's report would look like a refusal. */
		argv[last++] = "--ddp";
		argv[last++] = "--ddp-supervise=off";
	}
	argv[last++] = path;
	argv[last] = "--doctor";
	doctor_program_run(program, argv, STEP_MS, read_fact, nodes);
}

static int ask_facts(struct doctor_nodes *nodes, const char *config,
		     const char *here, size_t first)
{
	struct doctor_program program;
	double after = doctor_now();
	size_t i;

	if (set_variable("facts", config, here))
		return -1;
	run_step(nodes, &program, false, nodes->count - first);
	doctor_program_why(&program, nodes->problem, sizeof(nodes->problem));
	doctor_program_clear(&program);
	for (i = first; i < nodes->count; i++) {
		nodes->nodes[i].after = after;
		nodes->nodes[i].problem = nodes->problem;
	}
	return 0;
}

/* Never the first, which is the clock. */
static bool has_fact(const struct doctor_nodes *nodes, size_t i,
		     const char *line)
{
	return nodes->facts[i].length > 0 &&
	       strstr(nodes->facts[i].data, line);
}

static int ask_meeting(struct doctor_nodes *nodes, const char *config,
		       const char *here, size_t first)
{
	struct doctor_program program;
	char why[512];
	const char *fact = "refused";
	size_t i;

	if (set_variable("meet", config, here))
		return -1;
	run_step(nodes, &program, true, nodes->count - first);
	doctor_program_why(&program, why, sizeof(why));
	doctor_program_clear(&program);
	/* A refusal by allow= or deny= is the site's own wish. */
	if (strstr(why, DDP_SITE_FORBIDS))
		fact = "meet_unknown";
	else if (!strstr(why, "slurm-ddp: "))
		fact = "meet_flaw";
	for (i = first; i < nodes->count; i++)
		if (has_fact(nodes, i, "\nrank "))
			fact = "meet_flaw";
	for (i = first; i < nodes->count; i++)
		if (nodes->facts[i].length > 0 &&
		    !has_fact(nodes, i, "\nmet ") &&
		    !has_fact(nodes, i, "\nmeet_"))
			ddp_text_add(&nodes->facts[i], "%s %s\n", fact, why);
	return 0;
}

/* This machine first, unless it is a node of the job; then the nodes. */
static int list_nodes(struct doctor_nodes *nodes, const char *here)
{
	const struct ddp_hostlist *hosts = nodes->hosts;
	size_t count = hosts ? ddp_hostlist_count(hosts) : 0, i;
	bool is_node = false;

	for (i = 0; i < count; i++)
		is_node |= strcmp(ddp_hostlist_get(hosts, i), here) == 0;
	nodes->nodes = calloc(count + 1, sizeof(*nodes->nodes));
	nodes->facts = calloc(count + 1, sizeof(*nodes->facts));
	if (!nodes->nodes || !nodes->facts)
		return -1;
	if (!is_node)
		nodes->nodes[nodes->count++] = (struct check_node){
			.name = here, .here = true };
	for (i = 0; i < count; i++)
		nodes->nodes[nodes->count++].name =
			ddp_hostlist_get(hosts, i);
	return 0;
}

int doctor_nodes_ask(struct doctor_nodes *nodes, const char *config,
		     const char *here, bool with_ddp, struct ddp_error *error)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	size_t first, i;

	*nodes = (struct doctor_nodes){ .count = 0 };
	if (list) {
		nodes->hosts = ddp_hostlist_create(list, error);
		if (!nodes->hosts)
			return -1;
	}
	if (list_nodes(nodes, here))
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	first = nodes->nodes[0].here;
	if (first)
		doctor_facts(&nodes->facts[0], config, false);
	if (nodes->hosts &&
	    (ask_facts(nodes, config, here, first) ||
	     (with_ddp && ask_meeting(nodes, config, here, first))))
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < nodes->count; i++)
		nodes->nodes[i].facts = nodes->facts[i].failed ? NULL :
			nodes->facts[i].data;
	return 0;
}

void doctor_nodes_clear(struct doctor_nodes *nodes)
{
	size_t i;

	for (i = 0; nodes->facts && i < nodes->count; i++)
		free(nodes->facts[i].data);
	free(nodes->facts);
	free(nodes->nodes);
	ddp_hostlist_destroy(nodes->hosts);
}
