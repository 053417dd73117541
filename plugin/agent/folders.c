/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removes the private folders of ranks that were killed before they could do it
 * themselves. A folder is the rank's if it has the rank's name and the user
 * owns it; only the user can have made one of that name then.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state.h"
#include "util/file.h"

/* It holds files only; what cannot be removed stays, and so does the folder. */
static void remove_folder(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat status;

	if (folder && fstat(fd, &status) == 0 && status.st_uid == geteuid()) {
		while ((entry = readdir(folder)) != NULL)
			unlinkat(fd, entry->d_name, 0);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
}

/* Whether a name is that of a rank of this agent's. */
static bool is_ours(const struct ddp_agent *agent, const char *name)
{
	char ours[DDP_PRIVATE_SIZE];
	uint32_t i;

	if (strncmp(name, "slurm-ddp.", strlen("slurm-ddp.")) != 0)
		return false;
	for (i = 0; i < agent->count; i++) {
		ddp_private_format(agent->job_id, agent->step_id,
				   agent->node->slots[i].rank, ours);
		if (strncmp(name, ours, strlen(ours)) == 0)
			return true;
	}
	return false;
}

void ddp_folders_remove(const struct ddp_agent *agent)
{
	const char *const *at;
	struct dirent *entry;
	DIR *parent;

	for (at = ddp_private_parents; *at; at++) {
		parent = opendir(*at);
		while (parent && (entry = readdir(parent)) != NULL)
			if (is_ours(agent, entry->d_name))
				remove_folder(dirfd(parent), entry->d_name);
		if (parent)
			closedir(parent);
	}
}

void ddp_agent_tidy(uint32_t job_id, uint32_t step_id,
		    const struct ddp_siblings *siblings)
{
	const struct ddp_agent agent = {
		.node = (const void *)siblings->memory,
		.count = siblings->count,
		.job_id = job_id, .step_id = step_id,
	};
	uint32_t i;

	for (i = 0; i < agent.count; i++)
		ddp_errors_remove(&agent.node->slots[i]);
	ddp_folders_remove(&agent);
}
