/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the findings about nodes: one line for all that are alike. */
#define _GNU_SOURCE
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool check_fact(const struct check_node *node, const char *name, char *value,
		size_t size)
{
	size_t length = strlen(name);
	const char *line = node->facts;

	for (; line && *line; line += strspn(line, "\n")) {
		if (strncmp(line, name, length) == 0 && line[length] == ' ') {
			line += length + 1;
			snprintf(value, size, "%.*s",
				 (int)strcspn(line, "\n"), line);
			return *value != '\0';
		}
		line += strcspn(line, "\n");
	}
	*value = '\0';
	return false;
}

void check_say(struct check_verdict *verdict, enum check_level level,
	       const char *format, ...)
{
	va_list arguments;

	verdict->level = level;
	va_start(arguments, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, arguments);
	va_end(arguments);
}

static bool is_alike(const struct check_verdict *a,
		     const struct check_verdict *b)
{
	return a->level == b->level && strcmp(a->text, b->text) == 0;
}

static void add_verdicts(struct check *out, const struct check_world *world,
			 const char *what, struct check_verdict *verdicts)
{
	struct check_verdict one;
	struct check_group group;
	size_t i, k;

	for (i = 0; i < world->count; i++) {
		if (!*verdicts[i].text)
			continue;
		one = verdicts[i];
		memset(&group, 0, sizeof(group));
		for (k = i; k < world->count; k++)
			if (is_alike(&verdicts[k], &one)) {
				check_group_add(&group, world->nodes[k].name);
				*verdicts[k].text = '\0';
			}
		check_add(out, one.level, what, "%s: %s",
			  check_group_names(&group), one.text);
	}
}

void check_each(struct check *out, const struct check_world *world,
		const char *what, check_judge *judge)
{
	struct check_verdict *verdicts = calloc(world->count + 1,
						sizeof(*verdicts));
	size_t i;

	if (!verdicts) {
		out->text.failed = true;
		return;
	}
	for (i = 0; i < world->count; i++)
		if (world->nodes[i].facts)
			judge(world, &world->nodes[i], &verdicts[i]);
	add_verdicts(out, world, what, verdicts);
	free(verdicts);
}

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

void check_nodes(struct check *out, const struct check_world *world)
{
	check_silence(out, world);
	check_plugin(out, world);
	check_site(out, world);
	check_meeting(out, world);
	check_equal(out, world);
	check_limits(out, world);
	check_places(out, world);
}
