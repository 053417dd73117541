/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder around that of --ddp-logs, as this host sees it. */
#define _GNU_SOURCE
#include "srun/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <slurm/spank.h>

#include "options/plugin.h"
#include "srun/cli.h"
#include "util/text.h"

/* The folder in which DIR is made: where the step works, if DIR is relative. */
static void find_parent(const char *logs, char parent[PATH_MAX])
{
	const char *work = *logs == '/' ? NULL : ddp_cli_get("chdir");
	size_t length;

	snprintf(parent, PATH_MAX, "%s%s%s",
		 *logs == '/' ? "" : work ? work : ".",
		 *logs == '/' ? "" : "/", logs);
	length = strlen(parent);
	while (length > 1 && parent[length - 1] == '/')
		length--;
	while (length > 1 && parent[length - 1] != '/')
		length--;
	while (length > 1 && parent[length - 1] == '/')
		length--;
	parent[length] = '\0';
}

static bool is_missing(const char *folder)
{
	struct stat status;

	if (stat(folder, &status) == 0)
		return !S_ISDIR(status.st_mode);
	return errno == ENOENT || errno == ENOTDIR;
}

void ddp_folder_check_logs(void)
{
	char parent[PATH_MAX];

	if (!ddp_plugin.logs)
		return;
	find_parent(ddp_plugin.logs, parent);
	if (is_missing(parent))
		slurm_info("slurm-ddp: --ddp-logs: this host has no folder %s; "
			   "a node that has none either refuses the step",
			   ddp_text_quote(parent));
}
