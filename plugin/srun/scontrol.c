/* SPDX-License-Identifier: BSD-3-Clause */
/* The questions that the plugin has for Slurm's controller, by scontrol. */
#define _GNU_SOURCE
#include "srun/scontrol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/gres.h"
#include "srun/program.h"

char *ddp_scontrol_show(const char *what, const char *id)
{
	const char *argv[] = { "scontrol", "-d", "-o", "show", what, id, NULL };

	return ddp_program_read(argv);
}

/* scontrol prints one word "GRES=..." for each group of like nodes. */
static int parse_answer(char *text, const char *job_id, uint32_t *gpus,
			struct ddp_error *error)
{
	uint32_t group, groups = 0, first = 0;
	bool of_nodes = false;
	char *word, *save;

	for (word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		of_nodes |= strncmp(word, "Nodes=", 6) == 0;
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

bool ddp_scontrol_has_word(const char *text, const char *name,
			   const char *value)
{
	int length;
	const char *at = ddp_scontrol_find_word(text, name, &length);

	return (size_t)length == strlen(value) &&
	       strncmp(at, value, (size_t)length) == 0;
}
