/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lines that ddp-info --doctor prints, how Slurm's text and plugstack.conf
 * are read, and how the nodes are judged: one line for all that are alike.
 */
#define _GNU_SOURCE
#include "check.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 4 };

static const char *const words[CHECK_LEVELS] = {
	"ok", "advice", "unknown", "WRONG"
};

void check_add(struct check *out, enum check_level level, const char *what,
	       const char *format, ...)
{
	bool red = level == CHECK_WRONG && out->colour;
	char *line = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&line, format, arguments) < 0)
		line = NULL;
	va_end(arguments);
	out->counts[level]++;
	out->text.failed |= !line;
	ddp_text_add(&out->text, "%s%-8s", red ? DDP_TEXT_RED : "",
		     words[level]);
	ddp_text_add_quoted(&out->text, "%s: %s", what, line ? line : "");
	ddp_text_add(&out->text, "%s\n", red ? DDP_TEXT_PLAIN : "");
	free(line);
}

void check_end(struct check *out)
{
	ddp_text_add(&out->text, "%u wrong, %u advice, %u unknown, %u ok\n",
		     out->counts[CHECK_WRONG], out->counts[CHECK_ADVICE],
		     out->counts[CHECK_UNKNOWN], out->counts[CHECK_OK]);
}

static bool copy_value(const char *at, size_t length, char *value, size_t size)
{
	while (length > 0 && isspace((unsigned char)at[length - 1]))
		length--;
	if (length == 0 || length >= size ||
	    (length == 6 && strncmp(at, "(null)", 6) == 0))
		return false;
	memcpy(value, at, length);
	value[length] = '\0';
	return true;
}

bool check_get(const char *config, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);
	const char *line, *next, *at;

	*value = '\0';
	for (line = config; line; line = next) {
		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (strncmp(line, name, length) != 0)
			continue;
		at = line + length;
		at += strspn(at, " ");
		if (*at != '=')
			continue;
		at++;
		at += strspn(at, " ");
		return copy_value(at, strcspn(at, "\n"), value, size);
	}
	return false;
}

bool check_word(const char *line, const char *name, char *value, size_t size)
{
	size_t length = strlen(name), end = strcspn(line, "\n"), at = 0;

	*value = '\0';
	while (at < end) {
		if (strncmp(line + at, name, length) == 0 &&
		    line[at + length] == '=') {
			at += length + 1;
			return copy_value(line + at,
					  strcspn(line + at, " \n"), value,
					  size);
		}
		at += strcspn(line + at, " \n");
		at += strspn(line + at, " ");
	}
	return false;
}

const char *check_next_line(const char *text)
{
	text = strchr(text, '\n');
	return text && text[1] ? text + 1 : NULL;
}

int check_compare_versions(const char *a, const char *b)
{
	unsigned long x, y;
	char *end;

	while (*a || *b) {
		x = strtoul(a, &end, 10);
		a = end + strcspn(end, ".-");
		a += *a != '\0';
		y = strtoul(b, &end, 10);
		b = end + strcspn(end, ".-");
		b += *b != '\0';
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

void check_group_add(struct check_group *group, const char *name)
{
	size_t used = strlen(group->names);

	if (group->count++ < NAMES_SHOWN)
		snprintf(group->names + used, sizeof(group->names) - used,
			 "%s%.255s", used > 0 ? ", " : "", name);
}

const char *check_group_names(struct check_group *group)
{
	size_t used = strlen(group->names);

	if (group->count > NAMES_SHOWN)
		snprintf(group->names + used, sizeof(group->names) - used,
			 " and %zu more", group->count - NAMES_SHOWN);
	return group->names;
}

/* ---- plugstack.conf, as Slurm's plugstack.c reads it */

bool check_stack_argument(const char **line, char *word, size_t size)
{
	size_t length;

	*line += strspn(*line, " \t\n");
	length = strcspn(*line, " \t\n#");
	if (length == 0 || length >= size)
		return false;
	memcpy(word, *line, length);
	word[length] = '\0';
	*line += length;
	return true;
}

enum check_stack check_stack_line(const char **line, char *path, bool *required)
{
	char word[16];
	const char *base;

	if (!check_stack_argument(line, word, sizeof(word)) ||
	    !check_stack_argument(line, path, CHECK_VALUE_SIZE))
		return CHECK_STACK_OTHER;
	if (strcmp(word, "include") == 0)
		return CHECK_STACK_INCLUDE;
	*required = strcmp(word, "required") == 0;
	if (!*required && strcmp(word, "optional") != 0)
		return CHECK_STACK_OTHER;
	base = strrchr(path, '/');
	return strcmp(base ? base + 1 : path, "spank_ddp.so") == 0 ?
		CHECK_STACK_PLUGIN : CHECK_STACK_OTHER;
}

/* ---- nodes */

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
	for (i = 0; i < world->count; i++) {
		verdicts[i].world = world;
		if (world->nodes[i].facts)
			judge(&world->nodes[i], &verdicts[i]);
	}
	add_verdicts(out, world, what, verdicts);
	free(verdicts);
}
