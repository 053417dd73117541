/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts the agent. It is forked twice, so that the program of the task that
 * starts it has no child that it does not know; and it blocks all signals, as
 * Slurm sends them to every process of a step. Since the kernel treats it as a
 * former part of slurmstepd, the user cannot trace it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "stepd/root.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
	TASK_FILES = 7,		/* of each: itself, and its output */
	OTHER_FILES = 64
};

/* Block all signals, and keep only the agent's own files open. */
static int leave_task(void)
{
	sigset_t all;
	int null;

	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0 || setsid() < 0 ||
	    prctl(PR_SET_NAME, "ddp-agent") < 0 ||
	    dup2(ddp_stepd.notes[0], DDP_AGENT_NOTES) < 0)
		return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, DDP_AGENT_NULL) < 0)
		return -1;
	return (int)syscall(SYS_close_range, DDP_AGENT_SPEAK + 1, ~0U, 0);
}

/* Raise the limit on open files to what this many tasks need. */
static int allow_files(uint32_t tasks)
{
	struct rlimit limit;
	rlim_t need = TASK_FILES * (rlim_t)tasks + OTHER_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	if (limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* What must be open before the tasks' programs start, or some is missed. */
static int open_files(struct ddp_agent *agent)
{
	uint32_t i;

	ddp_cause_open(agent);
	agent->tasks = calloc(agent->count, sizeof(*agent->tasks));
	if (!agent->tasks)
		return -1;
	for (i = 0; i < agent->count; i++) {
		agent->tasks[i].pidfd =
			(int)syscall(SYS_pidfd_open, agent->node->slots[i].pid,
				     0);
		if (agent->tasks[i].pidfd < 0)
			return -1;
	}
	return 0;
}

static void explain(const struct ddp_agent *agent)
{
	if (errno == EMFILE)
		dprintf(DDP_AGENT_SPEAK, "slurm-ddp: on %s: %u tasks are not "
			"watched, because the limit of open files is too low; "
			"raise it (ulimit -n %u)\n", agent->host, agent->count,
			TASK_FILES * agent->count + OTHER_FILES);
}

/* In a process between the task and the agent; its memory is the task's. */
__attribute__((noreturn)) static void fork_agent(const struct ddp_task *task,
						 struct ddp_siblings *siblings)
{
	struct ddp_agent agent = {
		.siblings = siblings,
		.node = (void *)siblings->memory,
		.count = siblings->count,
		.job_id = task->job_id,
		.step_id = task->step_id,
		.world_size = task->world_size,
		.host = task->vars.rank.host,
		.path = ddp_task_users(task, "PATH"),
		.step.session = getsid(0),
		.progress.ras.port = ddp_ras_find_port(task),
	};
	pid_t pid = -1;

	ddp_talk_find(&agent.talk, task);
	if (leave_task() == 0) {
		if (allow_files(agent.count) == 0 && open_files(&agent) == 0)
			pid = fork();
		else
			explain(&agent);
	}
	if (pid == 0) {
		ddp_agent_run(&agent);
		atomic_store(&siblings->agent_done, true);
	} else {
		atomic_store(&siblings->agent, pid);
	}
	_exit(0);
}

void ddp_agent_start(const struct ddp_task *task, struct ddp_siblings *siblings)
{
	struct ddp_node *node = (void *)siblings->memory;
	pid_t pid = -1;

	/* Until it ends, the task waits: to copy slurmstepd twice takes long. */
	if (ddp_stepd.notes[0] >= 0 &&
	    ddp_errors_name(task, node->slots, siblings->count) == 0)
		pid = vfork();
	if (pid == 0)
		fork_agent(task, siblings);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
