/* SPDX-License-Identifier: BSD-3-Clause */
/* A command line, for the targets that fuzz the options of a tool. */
#ifndef DDP_FUZZ_FUZZ_ARGUMENTS_H
#define DDP_FUZZ_FUZZ_ARGUMENTS_H

#include "fuzz.h"

enum { FUZZ_ARGUMENTS_MAX = 24 };

/*
 * Each line of text becomes an argument behind the program's name. Returns how
 * many there are then; argv[that] is NULL.
 */
__attribute__((unused))
static int fuzz_arguments(char *text, char *program,
			  char *argv[FUZZ_ARGUMENTS_MAX + 1])
{
	int argc = 1;

	argv[0] = program;
	while (*text != '\0' && argc < FUZZ_ARGUMENTS_MAX)
		argv[argc++] = fuzz_next_line(&text);
	argv[argc] = NULL;
	return argc;
}

#endif
