/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process beside the tasks of a node. It is forked twice, so that the
 * program of the task that starts it has no child that it does not know; and it
 * blocks all signals, as Slurm sends them to every process of a step. Since the
 * kernel treats it as a former part of slurmstepd, the user cannot trace it.
 *
 * An error file is a name that nobody can guess, not yet a file: a step that
 * does not fail has none, and leaves none behind however it is killed.
 */
#define _GNU_SOURCE
#include "stepd/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "layout/failure.h"
#include "stepd/root.h"
#include "stepd/shared.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
	READ_MAX = 4096,	/* the message stands at the beginning */
	ENDS = STDIN_FILENO,	/* slurmstepd's pipe, in the agent */
	STARTER = STDOUT_FILENO,	/* the task that started the agent */
	PATIENCE_MS = 1000
};

/* An error, and when it was written. */
struct failure {
	uint32_t rank;
	struct timespec at;
	char message[DDP_FAILURE_SIZE];
};

/* torchrun, when somebody ends it by a signal: the cause is then elsewhere. */
static bool is_signal(const char *message)
{
	static const char name[] = "SignalException:";

	return strncmp(message, name, sizeof(name) - 1) == 0;
}

static bool read_failure(const struct ddp_slot *slot, struct failure *failure)
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
	failure->rank = slot->rank;
	failure->at = status.st_mtim;
	return ddp_failure_parse(text, failure->message) == 0 &&
	       !is_signal(failure->message);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec :
		a->tv_nsec < b->tv_nsec;
}

/*
 * A task has failed, the first one. Find the error that was written first: not
 * always by the task that ended first, nor is its end always seen first.
 * Returns false if the task has left none itself.
 */
static bool find_failure(const struct ddp_node *node, uint32_t count,
			 int task, struct failure *first)
{
	struct failure failure;
	uint32_t i;

	if (!read_failure(&node->slots[task], first))
		return false;
	for (i = 0; i < count; i++)
		if (read_failure(&node->slots[i], &failure) &&
		    is_before(&failure.at, &first->at))
			*first = failure;
	return true;
}

/* With the time, by which the first of several nodes is known. */
static void tell(const struct failure *failure, const char *host)
{
	char clock[16];
	struct tm local;

	localtime_r(&failure->at.tv_sec, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	dprintf(STDERR_FILENO, "slurm-ddp: rank %u failed first on %s, at "
		"%s.%03ld: %s\n", failure->rank, host, clock,
		failure->at.tv_nsec / 1000000, failure->message);
}

/* Slurm ends a step so: the cause is then elsewhere. */
static bool is_terminated(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

/*
 * Read the next end of a task; false if there will be none. srun's
 * --wait-for-children counts the agent as a child of the task that started it.
 * So if the task's process has ended, and for a second the task has not, the
 * agent must go first.
 */
static bool read_end(bool starter_ended, struct ddp_end *end)
{
	struct pollfd fds[] = {
		{ .fd = ENDS, .events = POLLIN },
		{ .fd = starter_ended ? -1 : STARTER, .events = POLLIN },
	};
	int rc = poll(fds, 2, -1);

	if (rc > 0 && !fds[0].revents)
		rc = poll(fds, 1, PATIENCE_MS);
	return rc > 0 && read(ENDS, end, sizeof(*end)) == sizeof(*end);
}

/* Read the ends of all tasks; the first of them that failed decides. */
static void watch(const struct ddp_node *node, uint32_t count, int starter,
		  const char *host)
{
	struct failure failure;
	struct ddp_end end;
	bool failed = false, starter_ended = false;
	uint32_t left = count;

	while (left-- > 0 && read_end(starter_ended, &end)) {
		starter_ended |= end.task == starter;
		if (end.status != 0 && !failed && !is_terminated(end.status) &&
		    find_failure(node, count, end.task, &failure))
			tell(&failure, host);
		failed |= end.status != 0;
		unlink(node->slots[end.task].error_file);
	}
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

static int name_files(const struct ddp_task *task, struct ddp_slot *slots,
		      uint32_t count)
{
	const char *folder = choose_folder(task);
	uint64_t secret[2];
	uint32_t i;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return -1;
	for (i = 0; i < count; i++)
		snprintf(slots[i].error_file, sizeof(slots[i].error_file),
			 "%s/slurm-ddp-%016" PRIx64 "%016" PRIx64 ".%u",
			 folder, secret[0], secret[1], slots[i].rank);
	return 0;
}

/*
 * Keep nothing open but standard error, the pipe and the task, and block all
 * signals.
 */
static int leave_task(int ends, pid_t task)
{
	sigset_t all;

	sigfillset(&all);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0 || setsid() < 0 ||
	    prctl(PR_SET_NAME, "ddp-agent") < 0 || dup2(ends, ENDS) < 0)
		return -1;
	close(STARTER);
	if (syscall(SYS_pidfd_open, task, 0) != STARTER)
		return -1;
	return (int)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
}

/* In a process between the task and the agent. */
__attribute__((noreturn)) static void fork_agent(const struct ddp_task *task,
						 struct ddp_siblings *siblings)
{
	pid_t pid = -1;

	if (leave_task(ddp_stepd.ends[0], getppid()) == 0)
		pid = fork();
	if (pid == 0)
		watch((void *)siblings->memory, siblings->count,
		      (int)task->local_rank, task->vars.rank.host);
	else
		atomic_store(&siblings->agent, pid);
	_exit(0);
}

void ddp_agent_start(const struct ddp_task *task, struct ddp_siblings *siblings)
{
	struct ddp_node *node = (void *)siblings->memory;
	pid_t pid = -1;

	if (ddp_stepd.ends[0] >= 0 &&
	    name_files(task, node->slots, siblings->count) == 0)
		pid = fork();
	if (pid == 0)
		fork_agent(task, siblings);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
