/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake of srun's options: those that the plugin reads, with the input
 * variable of each, and the three symbols by which it reads them.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define VALUE_SIZE 128

static struct row {
	const char *name, *variable;
	char letter;
	bool isset;
	char value[VALUE_SIZE];
} rows[] = {
	{ "container-image", NULL, 0, false, "" },	/* of pyxis */
	{ "environment", NULL, 0, false, "" },		/* of Alps */
	{ "chdir", NULL, 'D', false, "" },
	{ "cpu-bind", "SLURM_CPU_BIND", 0, false, "" },
	{ "cpus-per-gpu", "SLURM_CPUS_PER_GPU", 0, false, "" },
	{ "cpus-per-task", "SRUN_CPUS_PER_TASK", 'c', false, "" },
	{ "distribution", "SLURM_DISTRIBUTION", 'm', false, "" },
	{ "epilog", "SLURM_EPILOG", 0, false, "" },
	{ "error", "SLURM_STDERRMODE", 'e', false, "" },
	{ "exclude", NULL, 'x', false, "" },
	{ "exclusive", "SLURM_EXCLUSIVE", 0, false, "" },
	{ "gpu-bind", "SLURM_GPU_BIND", 0, false, "" },
	{ "gpus", "SLURM_GPUS", 'G', false, "" },
	{ "gpus-per-node", "SLURM_GPUS_PER_NODE", 0, false, "" },
	{ "gpus-per-socket", "SLURM_GPUS_PER_SOCKET", 0, false, "" },
	{ "gpus-per-task", "SLURM_GPUS_PER_TASK", 0, false, "" },
	{ "gres", "SLURM_GRES", 0, false, "" },
	{ "het-group", NULL, 0, false, "" },
	{ "input", "SLURM_STDINMODE", 'i', false, "" },
	{ "interactive", NULL, 0, false, "" },
	{ "jobid", "SLURM_JOB_ID", 0, false, "" },
	{ "kill-on-bad-exit", "SLURM_KILL_BAD_EXIT", 'K', false, "" },
	{ "mincpus", NULL, 0, false, "" },
	{ "mpi", "SLURM_MPI_TYPE", 0, false, "" },
	{ "no-allocate", NULL, 'Z', false, "" },
	{ "no-kill", NULL, 'k', false, "" },
	{ "nodefile", NULL, 'F', false, "" },
	{ "nodelist", NULL, 'w', false, "" },
	{ "nodes", "SLURM_JOB_NUM_NODES", 'N', false, "" },
	{ "ntasks", "SLURM_NTASKS", 'n', false, "" },
	{ "ntasks-per-gpu", "SLURM_NTASKS_PER_GPU", 0, false, "" },
	{ "ntasks-per-node", "SLURM_NTASKS_PER_NODE", 0, false, "" },
	{ "open-mode", "SLURM_OPEN_MODE", 0, false, "" },
	{ "overlap", "SLURM_OVERLAP", 0, false, "" },
	{ "output", "SLURM_STDOUTMODE", 'o', false, "" },
	{ "overcommit", "SLURM_OVERCOMMIT", 'O', false, "" },
	{ "partition", "SLURM_PARTITION", 'p', false, "" },
	{ "prolog", "SLURM_PROLOG", 0, false, "" },
	{ "async", NULL, 0, false, "" },
	{ "pty", NULL, 0, false, "" },
	{ "multi-prog", NULL, 0, false, "" },
	{ "quiet", NULL, 'Q', false, "" },
	{ "relative", NULL, 'r', false, "" },
	{ "signal", NULL, 0, false, "" },
	{ "task-epilog", "SLURM_TASK_EPILOG", 0, false, "" },
	{ "task-prolog", "SLURM_TASK_PROLOG", 0, false, "" },
	{ "wait-for-children", NULL, 0, false, "" },
	{ "wrap", NULL, 0, false, "" },
};

/* What the plugin takes from srun by name; its type does not matter. */
extern struct fake_opt {
	int unused;
} opt;
struct fake_opt opt;
char *slurm_option_get(struct fake_opt *options, const char *name);
bool slurm_option_isset(struct fake_opt *options, const char *name);

static struct row *row_find(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (strncmp(rows[i].name, name, length) == 0 &&
		    rows[i].name[length] == '\0')
			return &rows[i];
	return NULL;
}

static void row_set(struct row *row, const char *value)
{
	const char *prefix = "";

	/* Slurm turns a --gres into "gres:..." at once, except none. */
	if (strcmp(row->name, "gres") == 0 && strcmp(value, "none") != 0)
		prefix = "gres:";
	row->isset = true;
	snprintf(row->value, sizeof(row->value), "%s%s", prefix, value);
}

void fake_options_reset(void)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		rows[i].isset = false;
}

void fake_options_from_env(unsigned int component)
{
	const char *value, *name;
	char variable[128];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		name = rows[i].variable;
		/* srun reads the job's own from Slurm 23.11 on. */
		if (rows[i].letter == 'c' && getenv("FAKE_CPUS"))
			name = getenv("FAKE_CPUS");
		if (!name)
			continue;
		value = getenv(name);
		if (value)
			row_set(&rows[i], value);
		snprintf(variable, sizeof(variable), "%s_HET_GROUP_%u",
			 name, component);
		value = getenv(variable);
		if (value)
			row_set(&rows[i], value);
	}
}

bool fake_options_set(const char *word)
{
	size_t length, i;
	struct row *row;

	if (strncmp(word, "--", 2) == 0) {
		length = strcspn(word + 2, "=");
		row = row_find(word + 2, length);
		if (row)
			row_set(row, word[2 + length] ? word + 3 + length :
				"");
		return row != NULL;
	}
	for (i = 0; i < COUNT(rows); i++) {
		if (rows[i].letter && word[0] == '-' &&
		    word[1] == rows[i].letter) {
			row_set(&rows[i], word + 2);
			return true;
		}
	}
	return false;
}

/* Count the hosts in a list without brackets. */
static unsigned int nodelist_count(const char *list)
{
	unsigned int count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

char *slurm_option_get(struct fake_opt *options, const char *name)
{
	static char nodes[16];
	struct row *row = row_find(name, strlen(name));
	struct row *list = row_find("nodelist", strlen("nodelist"));

	if (options != &opt || !row)
		abort();
	if (strcmp(name, "cpu-bind") == 0)	/* srun does not tell it */
		return NULL;
	if (strcmp(name, "no-kill") == 0)
		return row->isset ? (char *)"set" : (char *)"unset";
	if (row->isset)
		return row->value;
	if (strcmp(name, "nodes") == 0) {
		snprintf(nodes, sizeof(nodes), "%u-0", list->isset ?
			 nodelist_count(list->value) : 1);
		return nodes;
	}
	if (strcmp(name, "mpi") == 0)	/* slurm.conf's MpiDefault */
		return getenv("FAKE_MPI_DEFAULT");
	return strcmp(name, "distribution") == 0 ? (char *)"block" : NULL;
}

bool slurm_option_isset(struct fake_opt *options, const char *name)
{
	struct row *row = row_find(name, strlen(name));

	if (options != &opt || !row)
		abort();
	return row->isset;
}

static uint32_t number(const char *name)
{
	struct row *row = row_find(name, strlen(name));

	return row->isset ? (uint32_t)atol(row->value) : 0;
}

void fake_options_step(struct step *step)
{
	step->nodes = (uint32_t)atol(slurm_option_get(&opt, "nodes"));
	step->tasks = number("ntasks");
	if (!step->tasks)
		step->tasks = step->nodes * number("ntasks-per-node");
	if (!step->tasks)
		step->tasks = step->nodes;
}

/* "verbose" is a --cpu-bind without a type. */
void fake_options_export(void)
{
	struct row *row = row_find("mpi", strlen("mpi"));
	const char *forgets = getenv("FAKE_FORGETS");

	/* As srun does from Slurm 24.11 on, of "none" */
	if (forgets && row->isset && strcmp(row->value, forgets) == 0) {
		setenv("SLURM_MPI_TYPE", row->value, 1);
		row->isset = false;
	}
	row = row_find("cpu-bind", strlen("cpu-bind"));
	if (!row->isset)
		return;
	setenv("SLURM_CPU_BIND", row->value, 1);
	setenv("SLURM_CPU_BIND_TYPE", strcmp(row->value, "verbose") == 0 ? "" :
	       row->value, 1);
}
