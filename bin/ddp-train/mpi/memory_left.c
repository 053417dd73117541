/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a machine and its cgroups have left. */
#define _GNU_SOURCE
#include "mpi/memory_left.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOM_NONE UINT64_MAX		/* no such number */
#define NO_LIMIT (UINT64_MAX / 4)	/* what cgroups call so is above it */

/* The files of the two versions of cgroups. */
struct version {
	const char *controller;		/* in /proc/self/cgroup */
	const char *filesystem, *option;
	const char *limit, *usage;
	const char *inactive, *active;	/* in memory.stat: files' pages */
};

static const struct version versions[] = {
	{ "memory", "cgroup", "memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes", "total_inactive_file ",
	  "total_active_file " },
	{ "", "cgroup2", "", "memory.max", "memory.current", "inactive_file ",
	  "active_file " }
};

static FILE *open_file(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >=
	    sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* The number after the words at the start of a line of a file. */
static uint64_t find_number(const char *directory, const char *name,
			    const char *words)
{
	FILE *file = open_file(directory, name);
	size_t length = strlen(words);
	unsigned long long number;
	uint64_t result = ROOM_NONE;
	char line[256];

	if (!file)
		return ROOM_NONE;
	while (result == ROOM_NONE && fgets(line, sizeof(line), file))
		if (strncmp(line, words, length) == 0 &&
		    sscanf(line + length, "%llu", &number) == 1)
			result = number;
	fclose(file);
	return result;
}

static uint64_t read_pages(const char *directory, const char *words)
{
	uint64_t bytes = find_number(directory, "memory.stat", words);

	return bytes == ROOM_NONE ? 0 : bytes;
}

/* Measures what one cgroup has left. Returns false if no limit is found. */
static bool measure(const struct version *version, const char *directory,
		    struct room *room)
{
	uint64_t limit = find_number(directory, version->limit, "");
	uint64_t usage = find_number(directory, version->usage, "");
	uint64_t files;
	struct stat stat_buffer;

	/* Version 2 without a limit says "max", version 1 a huge number. */
	if (limit > NO_LIMIT || usage == ROOM_NONE ||
	    stat(directory, &stat_buffer) < 0)
		return false;
	files = read_pages(directory, version->inactive) +
		read_pages(directory, version->active);
	usage -= files < usage ? files : usage;
	*room = (struct room){
		.device = stat_buffer.st_dev, .inode = stat_buffer.st_ino,
		.bytes = limit > usage ? limit - usage : 0
	};
	return true;
}

/* Returns true if a list with commas has the word; "": always. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (length > 0 && list) {
		if (strncmp(list, word, length) == 0 &&
		    (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		list += list != NULL;
	}
	return length == 0;
}

/* This process's cgroup, as a path below the root that it sees. */
static bool find_path(const char *proc, const struct version *version,
		      char path[PATH_MAX])
{
	FILE *file = open_file(proc, "self/cgroup");
	char line[PATH_MAX + 64];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *list = strchr(line, ':'), *at;

		line[strcspn(line, "\n")] = '\0';
		at = list ? strchr(list + 1, ':') : NULL;
		if (!at || strlen(at + 1) >= PATH_MAX)
			continue;
		*at = '\0';
		found = version->controller[0] == '\0' ? list[1] == '\0' :
			has_word(list + 1, version->controller);
		if (found)
			strcpy(path, at + 1);
	}
	if (file)
		fclose(file);
	return found;
}

/* Finds where the file system is mounted, and which of its folders is. */
static bool find_mount(const char *proc, const struct version *version,
		       char mount[PATH_MAX], char root[PATH_MAX])
{
	FILE *file = open_file(proc, "self/mountinfo");
	char line[3 * PATH_MAX], type[32], options[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *more = strstr(line, " - ");

		found = more && sscanf(line, "%*s %*s %*s %4095s %4095s", root,
				       mount) == 2 &&
			sscanf(more + 3, "%31s %*s %255s", type,
			       options) == 2 &&
			strcmp(type, version->filesystem) == 0 &&
			has_word(options, version->option);
	}
	if (file)
		fclose(file);
	return found;
}

/* The folder of this process's cgroup; *top characters of it are the mount. */
static bool find_directory(const char *proc, const struct version *version,
			   char directory[PATH_MAX], size_t *top)
{
	char path[PATH_MAX], root[PATH_MAX], *below = path;
	size_t length;

	if (!find_path(proc, version, path) ||
	    !find_mount(proc, version, directory, root))
		return false;
	*top = strlen(directory);
	/* A container has only a part of the tree mounted. */
	length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	below += strncmp(path, root, length) == 0 ? length : strlen(path);
	if (below[0] != '/' || below[1] == '\0' ||
	    strncmp(below, "/..", 3) == 0)
		below = "";
	if (*top + strlen(below) >= PATH_MAX)
		return false;
	strcpy(directory + *top, below);
	return true;
}

int room_find(const char *proc, struct room rooms[ROOMS])
{
	uint64_t kilobytes = find_number(proc, "meminfo", "MemAvailable:");
	int count = 0;

	if (kilobytes != ROOM_NONE)
		rooms[count++] = (struct room){ .bytes = kilobytes << 10 };
	for (size_t v = 0; v < sizeof(versions) / sizeof(*versions); v++) {
		char directory[PATH_MAX];
		size_t top;

		if (!find_directory(proc, &versions[v], directory, &top))
			continue;
		while (count < ROOMS) {
			char *end = strrchr(directory, '/');

			count += measure(&versions[v], directory,
					 &rooms[count]);
			if (strlen(directory) <= top || !end)
				break;
			*end = '\0';
		}
	}
	return count;
}
