/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tasks' error files, and those for their heartbeats. They are made before
 * any program starts, and only the user can open them, so that nobody else can
 * put something of that name there first. They lie in /dev/shm: most containers
 * share it with the node, while /tmp is often their own, and TMPDIR is missing
 * there. PyTorch does not expect that its file cannot be opened or written, and
 * would tell of that instead of the user's error: so it is where /dev/shm is full,
 * which PyTorch and NCCL need themselves.
 *
 * torchrun removes a file that is there and makes its own, which others may read
 * by its umask. So it has a folder for it; where it lacks that it only warns.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state.h"
#include "options/plugin.h"
#include "util/file.h"

enum { READ_MAX = 4096 };	/* the message stands at the beginning */

/* torchrun, when somebody ends it by a signal: the cause is then elsewhere. */
static bool is_signal(const char *message)
{
	static const char name[] = "SignalException:";

	return strncmp(message, name, sizeof(name) - 1) == 0;
}

bool ddp_errors_read(const struct ddp_slot *slot, struct ddp_error_file *error)
{
	int fd = open(slot->error_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
		      O_NOCTTY | O_CLOEXEC);
	char text[READ_MAX + 1];
	struct stat status;
	ssize_t length = -1;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_uid == geteuid())
		length = read(fd, text, READ_MAX);
	close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	error->rank = slot->rank;
	error->at = status.st_mtim;
	return ddp_failure_parse(text, error->message) == 0 &&
	       !is_signal(error->message);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec :
		a->tv_nsec < b->tv_nsec;
}

bool ddp_errors_find_first(const struct ddp_node *node, uint32_t count,
			   uint32_t task, struct ddp_error_file *first)
{
	struct ddp_error_file error;
	uint32_t i;

	if (!ddp_errors_read(&node->slots[task], first))
		return false;
	for (i = 0; i < count; i++)
		if (ddp_errors_read(&node->slots[i], &error) &&
		    is_before(&error.at, &first->at))
			*first = error;
	return true;
}

void ddp_errors_tell(const struct ddp_error_file *error, const char *host)
{
	char clock[16];
	struct tm local;

	localtime_r(&error->at.tv_sec, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	dprintf(DDP_AGENT_SPEAK, "slurm-ddp: rank %u failed first on %s, at "
		"%s.%03ld: %s\n", error->rank, host, clock,
		error->at.tv_nsec / 1000000, error->message);
}

/* Make a file, or a folder. Returns -1 with errno, and path is "". */
static int make(const struct ddp_agent *agent, uint32_t rank, bool folder,
		char path[DDP_PRIVATE_SIZE])
{
	char name[DDP_PRIVATE_SIZE];
	int fd = -1;

	ddp_private_format(agent->node->job_id, agent->node->step_id, rank,
			   name);
	if (snprintf(path, DDP_PRIVATE_SIZE, "/dev/shm/%sXXXXXX", name) <
	    DDP_PRIVATE_SIZE) {
		if (folder && mkdtemp(path))
			return 0;
		if (!folder)
			fd = mkostemp(path, O_CLOEXEC);
	}
	if (fd < 0)
		path[0] = '\0';
	else
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int make_error_file(const struct ddp_agent *agent,
			   struct ddp_slot *slot, bool launcher)
{
	if (!launcher)
		return make(agent, slot->rank, false, slot->error_file);
	if (make(agent, slot->rank, true, slot->error_folder) < 0)
		return -1;
	snprintf(slot->error_file, sizeof(slot->error_file), "%.65s/error",
		 slot->error_folder);
	return 0;
}

int ddp_errors_create(const struct ddp_agent *agent, struct ddp_slot *slots,
		      bool launcher)
{
	int rc = 0;
	uint32_t i;

	for (i = 0; i < agent->count && rc == 0; i++) {
		rc = make_error_file(agent, &slots[i], launcher);
		if (rc == 0 && ddp_plugin.watchdog_s)
			rc = make(agent, slots[i].rank, false,
				  slots[i].heartbeat_file);
	}
	return rc;
}

void ddp_errors_remove(const struct ddp_slot *slot)
{
	unlink(slot->error_file);
	rmdir(slot->error_folder);
	unlink(slot->heartbeat_file);
}

/* ---- private folders
 *
 * Those of ranks that were killed before they could remove them. A folder is the
 * rank's if it has the rank's name and the user owns it; only the user can have made
 * one of that name then.
 */

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
		ddp_private_format(agent->node->job_id, agent->node->step_id,
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

void ddp_agent_tidy(const struct ddp_siblings *siblings)
{
	const struct ddp_agent agent = {
		.node = (const void *)siblings->memory,
		.count = siblings->count,
	};
	uint32_t i;

	for (i = 0; i < agent.count; i++)
		ddp_errors_remove(&agent.node->slots[i]);
	ddp_folders_remove(&agent);
}
