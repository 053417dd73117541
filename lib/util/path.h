/* SPDX-License-Identifier: BSD-3-Clause */
/* The folders of a PATH. No file is looked at. */
#ifndef DDP_UTIL_PATH_H
#define DDP_UTIL_PATH_H

#include <limits.h>
#include <stdbool.h>

/*
 * Make the name that a file has in the first folder of *path, the value of a
 * PATH (NULL: it has no folders), and leave that folder out of *path. Those
 * without a name, as between "::", and those whose file would have too long a
 * name are left out, too. Returns false at the end.
 */
bool ddp_path_next(const char **path, const char *name, char file[PATH_MAX]);

#endif
