/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a task failed, as far as the kernel tells it to users: its memory was
 * short, or the driver of a GPU has logged an error (Xid).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "util/file.h"

enum { RECORD_SIZE = 8192 };	/* as the kernel has it, for /dev/kmsg */

/* Processes that were killed in a cgroup because its memory was short. */
static unsigned long count_killed(const char *folder)
{
	static const char *const files[] = {
		"memory.events", "memory.oom_control",
	};
	char path[DDP_CGROUP_SIZE + 32], *text = NULL;
	unsigned long count;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]) && !text; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		text = ddp_file_read(path);
	}
	count = ddp_cgroup_count(text, "oom_kill");
	free(text);
	return count;
}

static unsigned long count_machine(void)
{
	char *text = ddp_file_read("/proc/vmstat");
	unsigned long count = ddp_cgroup_count(text, "oom_kill");

	free(text);
	return count;
}

/* The folder of the task's cgroup that limits memory; "" if none does. */
static void find_memory(const char *mounts, pid_t pid,
			char folder[DDP_CGROUP_SIZE])
{
	static const char *const controllers[] = { "memory", "" };
	char *text = ddp_file_read_of(pid, "cgroup");
	char path[DDP_CGROUP_SIZE];
	size_t i;

	folder[0] = '\0';
	for (i = 0; i < 2 && text && folder[0] == '\0'; i++)
		if (ddp_cgroup_find_step(text, controllers[i], path) < 0 ||
		    ddp_cgroup_find(text, controllers[i], path) < 0 ||
		    ddp_cgroup_find_folder(mounts, controllers[i], path,
					   folder) < 0)
			folder[0] = '\0';
	free(text);
}

void ddp_cause_open(struct ddp_agent *agent)
{
	agent->cause.kmsg = open("/dev/kmsg",
				 O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (agent->cause.kmsg >= 0)
		lseek(agent->cause.kmsg, 0, SEEK_END);
}

void ddp_cause_begin(struct ddp_agent *agent)
{
	char *mounts = ddp_file_read("/proc/self/mountinfo");
	struct ddp_cause *cause = &agent->cause;
	uint32_t i;

	for (i = 0; i < agent->count; i++) {
		find_memory(mounts, agent->node->slots[i].pid,
			    agent->tasks[i].memory);
		agent->tasks[i].killed = count_killed(agent->tasks[i].memory);
	}
	free(mounts);
	cause->apart = agent->count == 1 ||
		       strcmp(agent->tasks[0].memory,
			      agent->tasks[1].memory) != 0;
	cause->machine = count_machine();
}

void ddp_cause_forget(struct ddp_agent *agent)
{
	if (!agent->cause.asked)
		agent->cause.machine = count_machine();
}

/* Whether a record is about this task: its process, or one of its GPUs. */
static bool is_about(const struct ddp_slot *slot,
		     const struct ddp_kernel_record *record)
{
	if (record->pid == (uint32_t)slot->pid)
		return true;
	return record->what == DDP_KERNEL_XID && record->bus[0] != '\0' &&
	       strcasestr(slot->buses, record->bus);
}

static void keep_record(struct ddp_agent *agent,
			const struct ddp_kernel_record *record)
{
	uint32_t i;

	for (i = 0; record->what != DDP_KERNEL_OTHER && i < agent->count; i++)
		if (is_about(&agent->node->slots[i], record))
			agent->tasks[i].record = *record;
}

/* Read what the kernel has said since the last time. */
static void read_kmsg(struct ddp_agent *agent)
{
	struct ddp_kernel_record record;
	char text[RECORD_SIZE];
	ssize_t length;

	for (;;) {
		length = agent->cause.kmsg < 0 ? 0 :
			read(agent->cause.kmsg, text, sizeof(text) - 1);
		if (length < 0 && errno == EPIPE)
			continue;	/* some are lost */
		if (length <= 0)
			return;
		text[length] = '\0';
		ddp_kernel_read_record(text, &record);
		keep_record(agent, &record);
	}
}

/* Returns true if SIGKILL has ended the task, or what it ran as a shell. */
static bool ends_by_kill(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL :
		WEXITSTATUS(status) == 128 + SIGKILL;
}

/*
 * Tasks that share a cgroup share the news, too: each process that was killed
 * explains one task that was killed.
 */
static bool was_killed(struct ddp_agent *agent, uint32_t task, int status)
{
	struct ddp_watched *watched = &agent->tasks[task];
	struct ddp_cause *cause = &agent->cause;

	if (count_killed(watched->memory) <= watched->killed + cause->step)
		return false;
	if (!cause->apart && ends_by_kill(status))
		cause->step++;
	return true;
}

/* The same where they have no cgroup that limits memory. It can be another's. */
static bool may_be_killed(struct ddp_agent *agent, uint32_t task, int status)
{
	if (agent->tasks[task].memory[0] != '\0' || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL ||
	    count_machine() <= agent->cause.machine)
		return false;
	agent->cause.machine++;
	return true;
}

void ddp_cause_find(struct ddp_agent *agent, uint32_t task, int status,
		    char cause[DDP_FAILURE_SIZE])
{
	const struct ddp_kernel_record *record = &agent->tasks[task].record;

	read_kmsg(agent);
	if (record->what == DDP_KERNEL_XID)
		snprintf(cause, DDP_FAILURE_SIZE, "Xid %u of GPU %s%s%s%s",
			 record->xid, record->bus, record->words[0] ? " (" : "",
			 record->words, record->words[0] ? ")" : "");
	else if (record->what == DDP_KERNEL_KILLED)
		snprintf(cause, DDP_FAILURE_SIZE, DDP_WIRE_NO_MEMORY);
	/* The kernel may have killed another process, long ago. */
	else if (was_killed(agent, task, status))
		snprintf(cause, DDP_FAILURE_SIZE, ends_by_kill(status) ?
			 DDP_WIRE_NO_MEMORY : DDP_WIRE_NO_MEMORY_OF);
	else if (may_be_killed(agent, task, status))
		snprintf(cause, DDP_FAILURE_SIZE, DDP_WIRE_GUESS);
}
