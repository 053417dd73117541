/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the facts of a machine's plugstack.conf: the plugin that it names, and
 * what it tells that, as the plugin's own parser reads it, which this machine
 * lacks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "layout/port_range.h"
#include "options/site.h"
#include "util/net.h"

enum { DEPTH_MAX = 8 };

struct stack {
	unsigned lines;			/* that name the plugin */
	bool required;			/* the first of them */
	char plugin[CHECK_VALUE_SIZE];	/* as it says */
	int problem;			/* errno of a file; 0: none */
	char **arguments;		/* of all lines */
	int count;
	bool failed;			/* memory was short */
};

static void read_stack(struct stack *stack, const char *path, int depth);

static void read_included(struct stack *stack, const char *file,
			  const char *pattern, int depth)
{
	const char *slash = strrchr(file, '/');
	char whole[2 * CHECK_VALUE_SIZE];
	glob_t found;
	size_t i;

	snprintf(whole, sizeof(whole), "%.*s%s",
		 *pattern == '/' || !slash ? 0 : (int)(slash + 1 - file), file,
		 pattern);
	if (depth == 0 || glob(whole, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		read_stack(stack, found.gl_pathv[i], depth - 1);
	globfree(&found);
}

static void add_arguments(struct stack *stack, const char *line)
{
	char word[CHECK_VALUE_SIZE], **more;

	while (check_stack_argument(&line, word, sizeof(word))) {
		more = realloc(stack->arguments, ((size_t)stack->count + 1) *
						 sizeof(*more));
		if (more)
			stack->arguments = more;
		if (!more || !(more[stack->count] = strdup(word))) {
			stack->failed = true;
			return;
		}
		stack->count++;
	}
}

/* A file that is not there is empty, as for Slurm. */
static void read_stack(struct stack *stack, const char *path, int depth)
{
	char *line = NULL, word[CHECK_VALUE_SIZE];
	FILE *file = fopen(path, "re");
	const char *rest;
	size_t size = 0;
	bool required;

	if (!file) {
		if (errno != ENOENT)
			stack->problem = errno;
		return;
	}
	while (getline(&line, &size, file) >= 0) {
		rest = line;
		switch (check_stack_line(&rest, word, &required)) {
		case CHECK_STACK_INCLUDE:
			read_included(stack, path, word, depth);
			break;
		case CHECK_STACK_PLUGIN:
			add_arguments(stack, rest);
			if (stack->lines++ > 0)
				break;
			strcpy(stack->plugin, word);
			stack->required = required;
			break;
		case CHECK_STACK_OTHER:
			break;
		}
	}
	free(line);
	fclose(file);
}

/* Slurm looks for plugstack.conf there; without a controller's word, beside
 * slurm.conf. */
static bool find_stack(const char *config, char *path, size_t size)
{
	static const char name[] = "plugstack.conf";
	char *slash;

	if (check_get(config, "PlugStackConfig", path, size))
		return true;
	if (!check_get(config, "SLURM_CONF", path, size - sizeof(name)))
		return false;
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, name);
	/* slurmd keeps here what the controller gave it, if a node has no
	 * files. */
	if (access(path, F_OK) && access("/run/slurm/conf", X_OK) == 0)
		snprintf(path, size, "/run/slurm/conf/%s", name);
	return true;
}

/* The plugin's whole path, in one of the folders of PluginDir. */
static void find_plugin(const char *config, struct stack *stack)
{
	char folders[CHECK_VALUE_SIZE], path[2 * CHECK_VALUE_SIZE];
	char *folder, *save;

	if (*stack->plugin == '/' ||
	    !check_get(config, "PluginDir", folders, sizeof(folders)))
		return;
	for (folder = strtok_r(folders, ":", &save); folder;
	     folder = strtok_r(NULL, ":", &save)) {
		snprintf(path, sizeof(path), "%s/%s", folder, stack->plugin);
		if (access(path, F_OK) == 0) {
			snprintf(stack->plugin, sizeof(stack->plugin), "%.*s",
				 CHECK_VALUE_SIZE - 1, path);
			return;
		}
	}
}

/* The version that plugin/version.c writes into the plugin. */
static void add_version(struct ddp_text *text, const char *path)
{
	static const char mark[] = "slurm-ddp plugin ";
	char *bytes = NULL, *at;
	size_t size = 0, length;
	FILE *file = fopen(path, "re");

	if (!file) {
		ddp_text_add(text, "plugin_flaw %s\n", strerror(errno));
		return;
	}
	/* A chunk at a time up to each newline: the mark has none. */
	while ((ssize_t)(length = (size_t)getline(&bytes, &size, file)) > 0) {
		at = memmem(bytes, length, mark, sizeof(mark) - 1);
		if (!at)
			continue;
		ddp_text_add_quoted(text, "plugin_version %.32s",
				    at + sizeof(mark) - 1);
		ddp_text_add(text, "\n");
		break;
	}
	free(bytes);
	fclose(file);
}

/* ---- the plugin's arguments */

/* Lists of "KEY=NAME", with a blank before and after each. */
struct named {
	struct ddp_text partitions, lacking;
};

static void add_once(struct ddp_text *list, const char *key, const char *name)
{
	char word[DDP_ITEM_SIZE + 16];

	snprintf(word, sizeof(word), " %s=%s ", key, name);
	if (!list->data || !strstr(list->data, word))
		ddp_text_add(list, "%s", list->data ? word + 1 : word);
}

/* Groups are those of the machine on which srun, sbatch or salloc runs. */
static void add_name(void *context, const char *key, const char *name)
{
	struct named *named = context;

	if (*name != '@')
		add_once(&named->partitions, key, name);
	else if (!getgrnam(name + 1))
		add_once(&named->lacking, key, name);
}

static void add_list(struct ddp_text *text, const char *fact,
		     struct ddp_text *list)
{
	if (list->data && !list->failed) {
		ddp_text_add_quoted(text, "%s%.*s", fact,
				    (int)list->length - 1, list->data);
		ddp_text_add(text, "\n");
	}
	text->failed |= list->failed;
	free(list->data);
}

/* Tasks of this job, and so of its partition, need these of their node. */
static void add_needs(struct ddp_text *text)
{
	struct ddp_plugin plugin = DDP_BUILT_IN;

	ddp_site_apply(&plugin, getenv("SLURM_JOB_PARTITION"));
	ddp_text_add(text, "port_range %u-%u\n", plugin.port_first,
		     plugin.port_last);
	if (ddp_interface_lacks("GLOO_SOCKET_IFNAME", plugin.interface))
		ddp_text_add(text, "interface_lacking %s\n", plugin.interface);
}

/* The plugin's parser keeps the arguments, not copies: nobody asks it later. */
static void add_site(struct ddp_text *text, struct stack *stack, bool is_node)
{
	struct named named = { .partitions = { 0 } };
	int i;

	text->failed |= stack->failed;
	ddp_site_read(stack->count, stack->arguments);
	if (stack->count > 0)
		ddp_text_add(text, "arguments %d\n", stack->count);
	if (ddp_site_error())
		ddp_text_add(text, "argument_flaw %s\n", ddp_site_error());
	ddp_site_names(add_name, &named);
	add_list(text, "partitions", &named.partitions);
	add_list(text, "groups_lacking", &named.lacking);
	if (is_node)
		add_needs(text);
	for (i = 0; i < stack->count; i++)
		free(stack->arguments[i]);
	free(stack->arguments);
}

/* ---- all of it */

void doctor_stack(struct ddp_text *text, const char *config, bool is_node)
{
	struct stack stack = { .lines = 0 };
	char path[CHECK_VALUE_SIZE];

	if (!find_stack(config, path, sizeof(path)))
		return;
	read_stack(&stack, path, DEPTH_MAX);
	ddp_text_add_quoted(text, "stack %s", path);
	ddp_text_add(text, "\nplugin_lines %u\n", stack.lines);
	if (stack.problem)
		ddp_text_add(text, "stack_flaw %s\n", strerror(stack.problem));
	if (stack.lines == 0)
		return;
	find_plugin(config, &stack);
	ddp_text_add_quoted(text, "plugin %s", stack.plugin);
	ddp_text_add(text, "\n");
	if (stack.required)
		ddp_text_add(text, "plugin_required yes\n");
	add_version(text, stack.plugin);
	add_site(text, &stack, is_node);
}
