/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what /proc says of cgroups: proc(5), cgroups(7). */
#include "proc/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if a list of length bytes, commas between, has the word. */
static bool has_word(const char *list, size_t length, const char *word)
{
	size_t size = strlen(word), step;

	for (;; list += step + 1, length -= step + 1) {
		const char *comma = memchr(list, ',', length);

		step = comma ? (size_t)(comma - list) : length;
		if (step == size && memcmp(list, word, size) == 0)
			return true;
		if (step == length)
			return false;
	}
}

/* The path in the line of this controller, up to its end; NULL. */
static const char *find_line(const char *text, const char *controller)
{
	const char *list, *path;

	for (; text && *text; text = strchr(text, '\n'),
			      text = text ? text + 1 : NULL) {
		list = strchr(text, ':');
		path = list ? strchr(++list, ':') : NULL;
		if (path && has_word(list, (size_t)(path - list), controller))
			return path + 1;
	}
	return NULL;
}

static int copy(const char *from, size_t length, char to[DDP_CGROUP_SIZE])
{
	if (length >= DDP_CGROUP_SIZE)
		return -1;
	memcpy(to, from, length);
	to[length] = '\0';
	return 0;
}

int ddp_cgroup_find(const char *text, const char *controller,
		    char path[DDP_CGROUP_SIZE])
{
	const char *at = find_line(text, controller);

	return at ? copy(at, strcspn(at, "\n"), path) : -1;
}

int ddp_cgroup_find_step(const char *text, const char *controller,
			 char path[DDP_CGROUP_SIZE])
{
	static const char name[] = "/step_";
	char *step;

	if (ddp_cgroup_find(text, controller, path) < 0)
		return -1;
	step = strstr(path, name);
	if (!step)
		return -1;
	step += sizeof(name) - 1;
	step[strcspn(step, "/")] = '\0';
	return 0;
}

/* A line of mountinfo: what of it is used here. */
struct mount {
	char root[DDP_CGROUP_SIZE], point[DDP_CGROUP_SIZE];
	char type[32], options[256];
};

static bool read_mount(const char *line, struct mount *mount)
{
	const char *rest = strstr(line, " - ");

	return rest && rest < line + strcspn(line, "\n") &&
	       sscanf(line, "%*s %*s %*s %1023s %1023s", mount->root,
		      mount->point) == 2 &&
	       sscanf(rest, " - %31s %*s %255s", mount->type,
		      mount->options) == 2 &&
	       !strchr(mount->point, '\\') && !strchr(mount->root, '\\');
}

/* The part of path below the root of the mount; NULL if it is elsewhere. */
static const char *strip(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 ||
	    (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return path + length;
}

static int use_mount(const struct mount *mount, const char *controller,
		     const char *path, char folder[DDP_CGROUP_SIZE])
{
	const char *below = strip(path, mount->root);
	int length;

	if (!below || (*controller ? strcmp(mount->type, "cgroup") != 0 ||
		       !has_word(mount->options, strlen(mount->options),
				 controller) :
		       strcmp(mount->type, "cgroup2") != 0))
		return -1;
	length = snprintf(folder, DDP_CGROUP_SIZE, "%s%s", mount->point, below);
	return length < DDP_CGROUP_SIZE ? 0 : -1;
}

int ddp_cgroup_find_folder(const char *mounts, const char *controller,
			   const char *path, char folder[DDP_CGROUP_SIZE])
{
	struct mount mount;

	for (; mounts && *mounts; mounts = strchr(mounts, '\n'),
				  mounts = mounts ? mounts + 1 : NULL)
		if (read_mount(mounts, &mount) &&
		    use_mount(&mount, controller, path, folder) == 0)
			return 0;
	return -1;
}

unsigned long ddp_cgroup_count(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (; text && *text; text = strchr(text, '\n'),
			      text = text ? text + 1 : NULL)
		if (strncmp(text, key, length) == 0 && text[length] == ' ')
			return strtoul(text + length + 1, NULL, 10);
	return 0;
}
