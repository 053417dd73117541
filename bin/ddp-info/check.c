/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines that ddp-info --doctor prints, and how Slurm's text is read. */
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
