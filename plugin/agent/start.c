/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts the agent. A process between makes it, so that the program of the task
 * that starts it has no child that it does not know; and it blocks all signals,
 * as Slurm sends them to every process of a step. Since the kernel treats it as
 * a former part of slurmstepd, the user cannot trace it.
 *
 * To copy slurmstepd's memory and to give the copy up takes longer than all
 * that the agent does. So it takes over that of the task, which gives it up
 * when its program starts. Until then the agent must sleep: both have one
 * thread's memory, such as errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "node/pidfd.h"
#include "util/file.h"

enum {
	TASK_FILES = 7,		/* of each: itself, and its output */
	OTHER_FILES = 64,
	STACK_SIZE = 1 << 20	/* what is touched of it takes memory */
};

/* What the agent is, in the memory that it takes over. */
static struct ddp_agent agent;

/* Not 0 while the task has that memory. The kernel clears it. */
static atomic_int taken;

/* Why there is no agent; and whether the tasks' files cannot be made. */
static int cause;
static bool unmade;

/* Block all signals, and keep only the agent's own files open. */
static int leave_task(int notes)
{
	sigset_t all;
	int null;

	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0 || setsid() < 0 ||
	    prctl(PR_SET_NAME, "ddp-agent") < 0 ||
	    dup2(notes, DDP_AGENT_NOTES) < 0)
		return -1;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, DDP_AGENT_NULL) < 0)
		return -1;
	return ddp_close_from(DDP_AGENT_SPEAK + 1);
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
static int open_files(void)
{
	uint32_t i;

	ddp_cause_open(&agent);
	agent.tasks = calloc(agent.count, sizeof(*agent.tasks));
	if (!agent.tasks)
		return -1;
	for (i = 0; i < agent.count; i++) {
		agent.tasks[i].pidfd = ddp_pidfd_open(agent.node->slots[i].pid);
		if (agent.tasks[i].pidfd < 0)
			return -1;
	}
	ddp_cause_begin(&agent);
	return 0;
}

static int make_files(bool launcher, struct ddp_node *node)
{
	int rc = ddp_errors_create(&agent, node->slots, launcher);

	unmade = rc < 0;
	return rc;
}

static int explain(uint32_t tasks, struct ddp_error *error)
{
	char fix[64] = "see that /dev/null and all of /proc can be opened there";

	if (unmade)
		strcpy(fix, "see that all users can make files in /dev/shm there");
	else if (cause == EMFILE)
		snprintf(fix, sizeof(fix), "raise the limit of open files "
			 "(ulimit -n %u)", TASK_FILES * tasks + OTHER_FILES);
	else if (cause == EAGAIN)
		strcpy(fix, "raise the limit of processes (ulimit -u)");
	else if (cause == ENOMEM)
		strcpy(fix, "free memory there");
	else if (cause == ESRCH)
		strcpy(fix, "one of them has ended already");
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%u task%s of this node "
			     "cannot be watched: %s; %s", tasks,
			     tasks > 1 ? "s" : "", strerror(cause), fix);
}

/* What the task does before its program starts must not change it. */
static int describe(const struct ddp_agent_step *step,
		    struct ddp_siblings *siblings)
{
	struct ddp_node *node = (void *)siblings->memory;

	agent = (struct ddp_agent){
		.siblings = siblings, .node = node,
		.count = siblings->count,
		.world_size = step->world_size,
		.awaited = step->awaited,
		.host = strdup(step->host),
		.path = step->path ? strdup(step->path) : NULL,
		.step.session = getsid(0),
		.step.slurmstepd = getppid(),
		.progress.ras.port = ddp_ras_find_port(step),
	};
	node->job_id = step->job_id;
	node->step_id = step->step_id;
	ddp_talk_find(&agent.talk, step);
	ddp_unseen_begin(&agent, step);
	return agent.host && (agent.path || !step->path) ? 0 : -1;
}

/* The agent. Until its memory is its own, no call may fail and set errno. */
static int run_agent(void *nothing)
{
	(void)nothing;
	while (atomic_load(&taken))
		syscall(SYS_futex, &taken, FUTEX_WAIT, 1, NULL, NULL, 0);
	ddp_agent_run(&agent);
	atomic_store(&agent.siblings->agent_done, true);
	return 0;
}

/* Returns its pid, or -1. */
static pid_t make_agent(void)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			   MAP_STACK, -1, 0);

	return stack == MAP_FAILED ? -1 :
		clone(run_agent, stack + STACK_SIZE, CLONE_VM | SIGCHLD, NULL);
}

/* In a process between the task and the agent; its memory is theirs. */
__attribute__((noreturn)) static void start(int notes,
					    struct ddp_siblings *siblings)
{
	pid_t pid = -1;

	if (leave_task(notes) == 0 && allow_files(agent.count) == 0 &&
	    open_files() == 0)
		pid = make_agent();
	cause = errno;
	atomic_store(&siblings->agent, pid);
	_exit(0);
}

int ddp_agent_start(const struct ddp_agent_step *step,
		    struct ddp_siblings *siblings, struct ddp_error *error)
{
	struct ddp_node *node = (void *)siblings->memory;
	pid_t pid = -1;
	uint32_t i;

	errno = EMFILE;		/* if slurmstepd has no socket */
	if (step->notes >= 0 && describe(step, siblings) == 0 &&
	    make_files(step->launcher, node) == 0) {
		/* Of the task's only thread; glibc needs it for others. */
		atomic_store(&taken, 1);
		syscall(SYS_set_tid_address, &taken);
		pid = vfork();
	}
	if (pid == 0)
		start(step->notes, siblings);
	if (pid < 0)
		cause = errno;
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (atomic_load(&siblings->agent) > 0)
		return 0;
	for (i = 0; i < agent.count; i++)
		ddp_errors_remove(&node->slots[i]);
	return explain(siblings->count, error);
}
