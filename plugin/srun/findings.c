/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what ddp-bench --preflight and the supervisor say of the nodes. */
#define _GNU_SOURCE
#include "srun/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "srun/rerun.h"
#include "util/text.h"

#define PROGRAM "ddp-bench"
#define PASSED PROGRAM ": preflight passed"
#define FAILED PROGRAM ": preflight failed: "
#define EXCLUDE "--exclude="
/*
 * The supervisor says "slurm-ddp: node n2 was lost first, after ..." or
 * "slurm-ddp: nodes n[3-4] were lost first, ..."
 */
static const struct {
	const char *node, *lost;
} sentences[] = {
	{ "slurm-ddp: node ", " was lost first," },
	{ "slurm-ddp: nodes ", " were lost first," },
};

/* The nodes that were lost; *length is that of the list. NULL: none are named. */
static const char *find_lost(const char *line, int *length)
{
	const char *begin, *end;
	size_t i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		if (strncmp(line, sentences[i].node,
			    strlen(sentences[i].node)) != 0)
			continue;
		begin = line + strlen(sentences[i].node);
		end = begin + strcspn(begin, " \n");
		*length = (int)(end - begin);
		if (strncmp(end, sentences[i].lost,
			    strlen(sentences[i].lost)) == 0)
			return begin;
	}
	return NULL;
}

/* srun --label puts the rank in front. */
static bool is_finding(const char *line)
{
	int length;

	if (find_lost(line, &length))
		return true;
	line += strspn(line, "0123456789 ");
	line += *line == ':';
	line += strspn(line, " ");
	return strncmp(line, PROGRAM ": ", strlen(PROGRAM ": ")) == 0;
}

bool ddp_findings_passed(const char *text)
{
	return text && strstr(text, PASSED);
}

/* A rank may have found rank 0 slow before it passed. */
void ddp_findings_print(char *text, bool passed)
{
	bool any = false;
	FILE *out = ddp_output_open();
	char *line, *next;

	for (line = text; line && out && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		if (passed ? strstr(line, PASSED) != NULL : is_finding(line))
			any = fprintf(out, "%s\n", ddp_text_quote(line)) > 0;
		else if (next > line && next[-1] == '\0')
			next[-1] = '\n';
	}
	if (!any && text && out)
		fputs(text, out);
	if (out)
		fclose(out);
}

/*
 * The list of nodes that it names as unfit; NULL: it names none. Who is lost
 * ddp-bench may have named, too.
 */
static char *list_unfit(const char *text)
{
	const char *at = text ? strstr(text, FAILED) : NULL, *line = text;
	const char *lost = NULL;
	int length;

	at = at ? strstr(at, EXCLUDE) : NULL;
	if (at) {
		at += strlen(EXCLUDE);
		return strndup(at, strcspn(at, " \n"));
	}
	while (line && !lost) {
		lost = find_lost(line, &length);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return lost ? strndup(lost, (size_t)length) : NULL;
}

struct ddp_hostlist *ddp_findings_unfit(const char *text)
{
	char *list = list_unfit(text);
	struct ddp_hostlist *hosts = list ? ddp_hostlist_create(list, NULL) :
					    NULL;

	free(list);
	return hosts;
}

bool ddp_findings_may_hold(const char *text)
{
	static const char *const words[] = {
		" lost first,", " has not come to the master",
		" answers no more",
	};
	size_t i;

	for (i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}
