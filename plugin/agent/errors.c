/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tasks' error files. Each is a name that nobody can guess, not yet a file:
 * a step that does not fail has none, and leaves none behind however it is
 * killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state.h"

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

/* The folder for error files: that of the job, if it can be used. */
static const char *choose_folder(const struct ddp_task *task)
{
	const char *folder = ddp_task_users(task, "TMPDIR");
	struct stat status;

	if (folder && *folder == '/' && !strchr(folder, ' ') &&
	    strlen(folder) < DDP_ERROR_FILE_SIZE / 2 &&
	    stat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
	    access(folder, W_OK | X_OK) == 0)
		return folder;
	return "/tmp";
}

int ddp_errors_name(const struct ddp_task *task, struct ddp_slot *slots,
		    uint32_t count)
{
	const char *folder = choose_folder(task);
	uint64_t secret[2];
	uint32_t i;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -1;
	for (i = 0; i < count; i++) {
		snprintf(slots[i].error_file, sizeof(slots[i].error_file),
			 "%s/slurm-ddp-%016" PRIx64 "%016" PRIx64 ".%u",
			 folder, secret[0], secret[1], slots[i].rank);
		snprintf(slots[i].heartbeat_file,
			 sizeof(slots[i].heartbeat_file), "%s.beats",
			 slots[i].error_file);
	}
	return 0;
}
