/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a line of plugstack.conf as Slurm's plugstack.c does. */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <string.h>

static const char blanks[] = " \t\n";

bool check_stack_argument(const char **line, char *word, size_t size)
{
	size_t length;

	*line += strspn(*line, blanks);
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
