/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the shell script that a command runs, and Accelerate's configuration. */
#define _GNU_SOURCE
#include "srun/script.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "request/command.h"
#include "srun/cli.h"
#include "util/path.h"

enum { SCRIPT_MAX = 64 << 10 };

/* All of a text, for the caller to free; NULL: it is none, or too long. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text = NULL;
	struct stat status;
	ssize_t got = -1;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_size <= SCRIPT_MAX)
		text = malloc(SCRIPT_MAX + 1);
	if (text)
		got = read(fd, text, SCRIPT_MAX);
	if (fd >= 0)
		close(fd);
	if (got >= 0)
		text[got] = '\0';
	if (got >= 0 && strlen(text) == (size_t)got)
		return text;
	free(text);
	return NULL;
}

/* A file in the folder in which the tasks begin. */
static char *read_here(const char *name)
{
	const char *folder = *name == '/' ? NULL : ddp_cli_get("chdir");
	char path[PATH_MAX];

	if (!folder)
		return read_text(name);
	return snprintf(path, sizeof(path), "%s/%s", folder, name) <
	       (int)sizeof(path) ? read_text(path) : NULL;
}

/* The first file of that name on PATH. */
static char *read_on_path(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];
	struct stat status;

	while (ddp_path_next(&folders, name, path))
		if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode))
			return read_text(path);
	return NULL;
}

/*
 * Returns whether the first line names a shell, as "#!/usr/bin/env bash" does, and
 * "#!/usr/bin/env -S bash -e".
 */
static bool begins_script(const char *text)
{
	char program[128] = "", argument[128] = "", second[128] = "";
	const char *name;

	if (strncmp(text, "#!", 2) != 0)
		return false;
	text += 2 + strspn(text + 2, " \t");
	sscanf(text, "%127[^ \t\n]%*[ \t]%127[^ \t\n]%*[ \t]%127[^ \t\n]",
	       program, argument, second);
	name = ddp_command_base(program);
	if (strcmp(name, "env") == 0)
		name = ddp_command_base(strcmp(argument, "-S") == 0 ? second :
					argument);
	return ddp_command_is_shell(name);
}

char *ddp_script_read(const char *name, bool shell)
{
	bool bare = strchr(name, '/') == NULL;
	char *text = bare && !shell ? NULL : read_here(name);

	if (!text && bare)
		text = read_on_path(name);
	if (text && (shell || begins_script(text)))
		return text;
	free(text);
	return NULL;
}

char *ddp_script_read_config(const char *name)
{
	static const char *const ends[] = { "yaml", "json" };
	const char *home = getenv("HF_HOME"), *cache = getenv("XDG_CACHE_HOME");
	const char *user = getenv("HOME");
	const char *root = home ? home : cache ? cache : user ? user : "";
	const char *middle = home ? "" : cache ? "/huggingface" :
			     "/.cache/huggingface";
	char path[PATH_MAX], *text = NULL;
	size_t i;

	if (*name)
		return read_here(name);
	for (i = 0; !text && i < 2; i++)
		if (snprintf(path, sizeof(path),
			     "%s%s/accelerate/default_config.%s", root, middle,
			     ends[i]) < (int)sizeof(path))
			text = read_text(path);
	return text;
}
