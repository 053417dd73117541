/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of this srun, which SPANK does not tell. */
#define _GNU_SOURCE
#include "srun/arguments.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

char **ddp_arguments_read(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t length, count = 0, i;
	char *text, **argv, *p;

	if (fd < 0)
		return NULL;
	text = ddp_file_read_fd(fd, &length);
	close(fd);
	if (!text)
		return NULL;
	for (i = 0; i < length; i++)
		count += text[i] == '\0';
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv) {
		free(text);
		return NULL;
	}
	for (i = 0, p = text; p < text + length; p += strlen(p) + 1)
		argv[i++] = p;
	return argv;
}

void ddp_arguments_free(char **argv)
{
	if (argv)
		free(argv[0]);
	free(argv);
}

/* srun reads each component from its ":" on, as if that were its own name. */
char **ddp_arguments_command(char **argv, uint32_t component)
{
	int i, parsed = ddp_arguments_parsed();

	for (; argv && component > 0 && *argv; component--)
		do
			argv++;
		while (*argv && strcmp(*argv, ":") != 0);
	for (i = 0; argv && i < parsed && argv[i]; i++)
		;
	if (!argv || i == 0 || !argv[i] || strcmp(argv[i], ":") == 0)
		return NULL;
	argv += i;
	for (i = 0; argv[i] && strcmp(argv[i], ":") != 0; i++)
		;
	argv[i] = NULL;
	return argv;
}

uint32_t ddp_arguments_next(char **argv, uint32_t begin)
{
	uint32_t i, at = begin + (uint32_t)ddp_arguments_parsed();

	for (i = 0; argv && i < at; i++)
		if (!argv[i])
			return 0;
	for (; argv && argv[at]; at++)
		if (strcmp(argv[at], ":") == 0)
			return at;
	return 0;
}

void ddp_arguments_find(char *const *argv, uint32_t begin, const char *name,
			char *value, size_t size)
{
	uint32_t i, end = begin + (uint32_t)ddp_arguments_parsed();
	size_t length = strlen(name);

	for (i = 0; argv && i < end && argv[i]; i++) {
		if (i <= begin || strncmp(argv[i], name, length) != 0)
			continue;
		if (argv[i][length] == '=')
			snprintf(value, size, "%s", argv[i] + length + 1);
		else if (argv[i][length] == '\0' && argv[i + 1])
			snprintf(value, size, "%s", argv[i + 1]);
	}
}

int ddp_arguments_parsed(void)
{
	return optind;
}
