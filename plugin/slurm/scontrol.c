/* SPDX-License-Identifier: BSD-3-Clause */
/* The questions that the plugin has for Slurm's controller. */
#define _GNU_SOURCE
#include "slurm/scontrol.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "request/gres.h"
#include "util/program.h"

char *ddp_scontrol_show(const char *what, const char *id)
{
	const char *argv[] = { "scontrol", "-d", "-o", "show", what, id, NULL };

	return ddp_program_read(argv, STDERR_FILENO);
}

/* Some versions print an error where a cluster has none, which is dropped. */
char *ddp_scontrol_show_topology(void)
{
	const char *argv[] = { "scontrol", "show", "topology", NULL };

	return ddp_program_read(argv, -1);
}

/* All of an array or a heterogeneous job can be shown for one number. */
char *ddp_squeue_show(const char *job_id, const char *option,
		      const char *format)
{
	const char *argv[] = { "squeue", "-ah", "-tall", "-j", job_id, option,
			       format, NULL };
	char *text = ddp_program_read(argv, STDERR_FILENO), *line, *save, *found = NULL;
	size_t length = strlen(job_id);

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (!found || (strncmp(line, job_id, length) == 0 &&
			       line[length] == ' '))
			found = line;
	if (found)
		found += strcspn(found, " ");
	found = found ? strdup(found + strspn(found, " ")) : NULL;
	free(text);
	return found;
}

/*
 * scontrol prints one word "GRES=..." for each group of like nodes, between JOB_GRES
 * and MinCPUsNode. The job's name comes before: only a name with all of these words
 * is taken for them, and misleads its owner alone.
 */
static int parse_answer(char *text, const char *job_id, uint32_t *gpus,
			struct ddp_error *error)
{
	uint32_t group, groups = 0, first = 0;
	bool of_nodes = false, details = false;
	char *word, *save;

	for (word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		details = (details || strncmp(word, "JOB_GRES=", 9) == 0) &&
			  strncmp(word, "MinCPUsNode=", 12) != 0;
		of_nodes |= details && strncmp(word, "Nodes=", 6) == 0;
		if (!of_nodes || strncmp(word, "GRES=", 5) != 0)
			continue;
		of_nodes = false;
		if (ddp_gres_count_gpus(word + 5, &group, error) < 0)
			return -1;
		if (groups++ == 0)
			first = group;
		else if (group != first)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "job %.64s has %u GPUs on one "
					     "node and %u on another; give "
					     "the number of tasks with -n",
					     job_id, first, group);
	}
	*gpus = first;
	return 0;
}

int ddp_scontrol_count_gpus(const char *job_id, uint32_t *gpus,
			    struct ddp_error *error)
{
	char *text = ddp_scontrol_show("job", job_id);
	int rc;

	if (!text)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "scontrol does not tell how many GPUs job "
				     "%.64s has; give the number of tasks with "
				     "-n", job_id);
	rc = parse_answer(text, job_id, gpus, error);
	free(text);
	return rc;
}

char *ddp_scontrol_show_step(uint32_t job_id, uint32_t step_id)
{
	char id[32];

	snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	return ddp_scontrol_show("step", id);
}

const char *ddp_scontrol_find_setting(const char *text, const char *key)
{
	size_t length = strlen(key);
	const char *at;

	for (; text; text = *text ? text + 1 : NULL) {
		at = text + length;
		if (strncmp(text, key, length) == 0 &&
		    strncmp(at + strspn(at, " "), "= ", 2) == 0)
			return at + strspn(at, " ") + 2;
		text += strcspn(text, "\n");
	}
	return NULL;
}

const char *ddp_scontrol_find_word(const char *text, const char *name,
				   int *length)
{
	size_t name_length = strlen(name);
	const char *at = text;

	*length = 0;
	while (at && (at = strstr(at, name))) {
		if ((at == text || at[-1] == ' ') && at[name_length] == '=') {
			at += name_length + 1;
			*length = (int)strcspn(at, " \n");
			return at;
		}
		at += name_length;
	}
	return "";
}
