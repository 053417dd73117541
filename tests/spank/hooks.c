/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads the plugin as Slurm does, once for every line of the plugstack.conf
 * beside the program, and calls its hooks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define LINES_MAX 4
#define ARGS_MAX 16

static struct line {
	void *plugin;
	int argc;
	char *argv[ARGS_MAX];
} lines[LINES_MAX];
static size_t line_count;

static void beside(char *path, const char *name)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 32);

	if (length < 0)
		abort();
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, name);
}

/* "optional spank_ddp.so key=value ..." */
static void line_load(char *text)
{
	struct line *line = &lines[line_count++];
	char path[PATH_MAX], *word;

	strtok(text, " \n");
	beside(path, strtok(NULL, " \n"));
	while ((word = strtok(NULL, " \n")))
		line->argv[line->argc++] = strdup(word);
	line->plugin = dlopen(path, RTLD_NOW);
	if (!line->plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
}

void walk_load(void)
{
	char path[PATH_MAX], text[1024];
	FILE *file;

	beside(path, "plugstack.conf");
	file = fopen(path, "r");
	while (file && line_count < LINES_MAX &&
	       fgets(text, sizeof(text), file))
		line_load(text);
	if (!file || fclose(file))
		abort();
}

void walk_hook(const char *name)
{
	int (*call)(spank_t spank, int argc, char **argv);
	size_t i;

	for (i = 0; i < line_count; i++) {
		*(void **)&call = dlsym(lines[i].plugin, name);
		if (call && call(NULL, lines[i].argc, lines[i].argv) != 0)
			fprintf(stderr, "%s returned an error\n", name);
	}
}

/* "--name" or "--name=value"; false where no plugin has such an option. */
bool walk_option(const char *word, int remote)
{
	size_t length = strcspn(word, "="), i;
	struct spank_option *option;

	for (i = 0; i < fake.option_count; i++) {
		option = fake.options[i];
		if (strncmp(word, "--", 2) != 0 ||
		    strlen(option->name) != length - 2 ||
		    strncmp(option->name, word + 2, length - 2) != 0)
			continue;
		if (option->cb(option->val, word[length] ? word + length + 1 :
			       NULL, remote) != 0)
			exit(98);
		return true;
	}
	return false;
}
