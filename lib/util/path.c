/* SPDX-License-Identifier: BSD-3-Clause */
/* The folders of a PATH. */
#define _POSIX_C_SOURCE 200809L
#include "util/path.h"

#include <stdio.h>
#include <string.h>

bool ddp_path_next(const char **path, const char *name, char file[PATH_MAX])
{
	const char *folder;
	size_t length;
	int size;

	while (*path && **path) {
		folder = *path;
		length = strcspn(folder, ":");
		*path += length + (folder[length] == ':');
		if (length == 0 || length >= PATH_MAX)
			continue;
		size = snprintf(file, PATH_MAX, "%.*s/%s", (int)length, folder,
				name);
		if (size < PATH_MAX)
			return true;
	}
	return false;
}
