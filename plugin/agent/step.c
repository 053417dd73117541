/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All processes of the step on this node: those in its cgroup; where it has
 * none, those of slurmstepd's session, and what descends from them. Only those
 * of the same user can be killed at all: in a step of root's slurmstepd, too.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "node/pidfd.h"
#include "util/file.h"

enum { DEPTH = 4 };	/* of folders below the step's */

static struct ddp_process *find(const struct ddp_processes *list, pid_t pid)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->data[i].pid == pid)
			return &list->data[i];
	return NULL;
}

static void add(struct ddp_processes *list, pid_t pid)
{
	struct ddp_kernel_process process;
	struct ddp_process *data = list->data;
	char *text = ddp_file_read_of(pid, "stat");
	bool lives = text && ddp_kernel_read_process(text, &process) == 0 &&
		     !strchr("ZX", process.state);

	free(text);
	if (!lives)
		return;
	if (list->count == list->size) {
		list->size = list->size ? 2 * list->size : 64;
		data = realloc(data, list->size * sizeof(*data));
		if (!data)
			return;
		list->data = data;
	}
	data[list->count++] = (struct ddp_process){
		.pid = pid,
		.parent = process.parent,
		.session = process.session,
		.rank = DDP_WIRE_NO_RANK,
		.state = process.state,
		.cpu = process.cpu,
	};
}

/* The processes of a cgroup, and of those below. */
static void add_cgroup(struct ddp_processes *list, const char *folder,
		       int depth)
{
	char path[DDP_CGROUP_SIZE + 256 + 2], *text, *at, *end;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	text = ddp_file_read(path);
	for (at = text; at && *at; at = end + strspn(end, "\n")) {
		add(list, (pid_t)strtol(at, &end, 10));
		if (end == at)
			break;
	}
	free(text);
	dir = depth > 0 ? opendir(folder) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strlen(path) < DDP_CGROUP_SIZE)
			add_cgroup(list, path, depth - 1);
	}
	if (dir)
		closedir(dir);
}

/* Keep of all processes of the machine those that are the step's. */
static void keep_session(struct ddp_agent *agent, struct ddp_processes *list)
{
	const struct ddp_process *parent;
	bool more = true;
	size_t i, kept = 0;

	while (more) {
		more = false;
		for (i = 0; i < list->count; i++) {
			struct ddp_process *process = &list->data[i];

			parent = find(list, process->parent);
			if (process->ours || process->pid == getpid() ||
			    (process->session != agent->step.session &&
			     (!parent || !parent->ours)))
				continue;
			process->ours = true;
			more = true;
		}
	}
	for (i = 0; i < list->count; i++)
		if (list->data[i].ours)
			list->data[kept++] = list->data[i];
	list->count = kept;
}

static void add_session(struct ddp_agent *agent, struct ddp_processes *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t pid;

	while (dir && (entry = readdir(dir))) {
		pid = (pid_t)atol(entry->d_name);
		if (pid > 0)
			add(list, pid);
	}
	if (dir)
		closedir(dir);
	keep_session(agent, list);
}

/* Returns the rank that a process's variables name; DDP_WIRE_NO_RANK: none. */
static uint32_t read_rank(const struct ddp_agent *agent, pid_t pid)
{
	static const char name[] = "SLURM_PROCID=";
	char *text = ddp_file_read_of(pid, "environ");
	const char *at = text;
	uint32_t i, rank = DDP_WIRE_NO_RANK;
	char digits[16];

	while (at && *at && strncmp(at, name, strlen(name)) != 0)
		at += strlen(at) + 1;
	for (i = 0; at && *at && i < agent->count; i++) {
		snprintf(digits, sizeof(digits), "%u",
			 agent->node->slots[i].rank);
		if (strcmp(at + strlen(name), digits) == 0)
			rank = agent->node->slots[i].rank;
	}
	free(text);
	return rank;
}

/* Returns the rank of the task that a process is, or descends from; the same. */
static uint32_t find_task(const struct ddp_agent *agent,
			  const struct ddp_processes *now,
			  const struct ddp_process *process)
{
	uint32_t i;

	for (; process; process = find(now, process->parent))
		for (i = 0; i < agent->count; i++)
			if (agent->node->slots[i].pid == process->pid)
				return agent->node->slots[i].rank;
	return DDP_WIRE_NO_RANK;
}

/*
 * A process keeps the rank with which it was seen before. podman's containers
 * descend from no task, but have its variables.
 */
static void note_ranks(const struct ddp_agent *agent, struct ddp_processes *now)
{
	const struct ddp_process *before, *at;
	struct ddp_process *process;
	size_t i;

	for (i = 0; i < now->count; i++) {
		process = &now->data[i];
		before = find(&agent->step.found, process->pid);
		process->told = before && before->told;
		process->rank = find_task(agent, now, process);
		process->apart = process->rank == DDP_WIRE_NO_RANK;
		if (before && before->rank != DDP_WIRE_NO_RANK)
			process->rank = before->rank;
		for (at = process; at && process->rank == DDP_WIRE_NO_RANK;
		     at = find(now, at->parent))
			process->rank = read_rank(agent, at->pid);
	}
}

/* Whether a process is still the one that was found. */
static bool is_same(const struct ddp_container *step,
		    const struct ddp_process *process)
{
	char *text = ddp_file_read_of(process->pid, step->controller ?
				      "cgroup" : "stat");
	struct ddp_kernel_process now;
	char path[DDP_CGROUP_SIZE];
	bool same = false;

	if (text && step->controller)
		same = ddp_cgroup_find_step(text, step->controller,
					    path) == 0 &&
		       strcmp(path, step->path) == 0;
	else if (text)
		same = ddp_kernel_read_process(text, &now) == 0 &&
		       now.session == process->session;
	free(text);
	return same;
}

/* Returns whether it was there to be killed. */
static bool kill_one(const struct ddp_container *step,
		     const struct ddp_process *process)
{
	int pidfd = ddp_pidfd_open(process->pid);
	bool there;

	if (pidfd < 0)
		return false;
	there = is_same(step, process) &&
		ddp_pidfd_kill(pidfd, process->pid, SIGKILL) == 0;
	close(pidfd);
	return there;
}

void ddp_step_find(struct ddp_agent *agent, struct ddp_processes *list)
{
	if (agent->step.controller)
		add_cgroup(list, agent->step.folder, DEPTH);
	else
		add_session(agent, list);
	note_ranks(agent, list);
}

size_t ddp_step_kill(struct ddp_agent *agent)
{
	struct ddp_container *step = &agent->step;
	struct ddp_processes now = { 0 };
	size_t i, kept = 0;

	ddp_step_find(agent, &now);
	for (i = 0; i < now.count; i++)
		if (now.data[i].pid != getpid() &&
		    now.data[i].pid != atomic_load(&agent->siblings->tee) &&
		    now.data[i].pid != step->slurmstepd &&
		    kill_one(step, &now.data[i]))
			now.data[kept++] = now.data[i];
	now.count = kept;
	free(step->found.data);
	step->found = now;
	return kept;
}

/* Whether the agent itself is where it looks for others. */
static bool is_right(const struct ddp_container *step)
{
	struct ddp_processes list = { 0 };
	bool right;

	add_cgroup(&list, step->folder, DEPTH);
	right = find(&list, getpid()) != NULL;
	free(list.data);
	return right;
}

/* Those of version 1 that hold all processes of a step, and version 2. */
void ddp_step_begin(struct ddp_agent *agent)
{
	static const char *const controllers[] = {
		"freezer", "", "memory", "cpuset", "devices", NULL
	};
	char *text = ddp_file_read("/proc/self/cgroup");
	char *mounts = ddp_file_read("/proc/self/mountinfo");
	struct ddp_container *step = &agent->step;
	const char *const *at = controllers;

	while (*at && (!text || !mounts ||
		       ddp_cgroup_find_step(text, *at, step->path) < 0 ||
		       ddp_cgroup_find_folder(mounts, *at, step->path,
					      step->folder) < 0 ||
		       !is_right(step)))
		at++;
	step->controller = *at;
	free(text);
	free(mounts);
}
