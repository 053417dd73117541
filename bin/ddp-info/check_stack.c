/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a line of plugstack.conf as Slurm's plugstack.c does. */
#define _GNU_SOURCE
#include "check.h"

#include <stdio.h>
#include <string.h>

static const char blanks[] = " \t\n";

/* Copies the next word at *at, and moves *at past it. */
static bool take_word(const char **at, char *word, size_t size)
{
	size_t length;

	*at += strspn(*at, blanks);
	length = strcspn(*at, " \t\n#");
	if (length == 0 || length >= size)
		return false;
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	return true;
}

enum check_stack check_stack_line(const char *line, char *path, bool *required)
{
	char word[16];
	const char *base;

	if (!take_word(&line, word, sizeof(word)) ||
	    !take_word(&line, path, CHECK_VALUE_SIZE))
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
