/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks for a dry run that a command can be executed, without running it. */
#define _GNU_SOURCE
#include "stepd/command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/file.h"
#include "util/path.h"

/*
 * Find it as slurmstepd does: the first file of that name in PATH, whether it
 * can be executed or not; of a name with a slash, too, if that is not its first
 * character or the second. Else it is the name itself.
 */
static void find_path(const struct ddp_task *task, const char *name,
		      char path[PATH_MAX])
{
	const char *folders = ddp_task_getenv(task, "PATH");
	struct stat status;

	while (*name != '/' && *name != '.' &&
	       ddp_path_next(&folders, name, path))
		if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode))
			return;
	snprintf(path, PATH_MAX, "%s", name);
}

/*
 * Runs in a process of its own. It stops to be made to die with this task, and
 * stops again as the command. If execve fails, it ends with execve's error.
 */
__attribute__((noreturn)) static void become(pid_t parent, const char *path,
					     char **argv, char **environment)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(0);
	raise(SIGSTOP);
	execve(path, argv, environment);
	_exit(errno);
}

static void await(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
}

/*
 * Returns 0, or the error of execve. A set-user-ID program loses
 * PR_SET_PDEATHSIG, but not PTRACE_O_EXITKILL.
 */
static int try(const char *path, char **argv, char **environment)
{
	int status = 0;
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return 0;
	if (pid == 0)
		become(parent, path, argv, environment);
	await(pid, &status);
	if (WIFSTOPPED(status) &&
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL) == 0 &&
	    ptrace(PTRACE_CONT, pid, NULL, NULL) == 0)
		await(pid, &status);
	/* A system that restricts tracing may say EPERM. */
	if (!WIFSTOPPED(status))
		return WIFEXITED(status) && WEXITSTATUS(status) != EPERM ?
			WEXITSTATUS(status) : 0;
	kill(pid, SIGKILL);
	await(pid, &status);
	return 0;
}

/* The interpreter that the first line of a script names; "": it is no script. */
static void read_interpreter(const char *path, char name[256])
{
	char line[256];

	ddp_file_read_line(path, line, sizeof(line));
	name[0] = '\0';
	if (strncmp(line, "#!", 2) == 0)
		sscanf(line + 2, " %254s", name);
}

static int fail(const struct ddp_task *task, const char *path, int number,
		struct ddp_error *error)
{
	const char *what = strerror(number);
	const char *fix = "correct its name, or install it on this node";
	char name[256] = "", why[512];
	struct stat status;

	if (number == ENOENT && access(path, F_OK) == 0) {
		read_interpreter(path, name);
		snprintf(why, sizeof(why), "%.200s, which would run it, is "
			 "missing", *name ? name : "the program loader");
		what = why;
		fix = *name ? "install it, or change the first line" :
			"build it for this machine";
	} else if (number == ENOEXEC) {
		fix = "a script needs a first line such as #!/bin/sh";
	} else if (number == EACCES && stat(path, &status) == 0 &&
		   S_ISDIR(status.st_mode)) {
		what = "is a folder";
		fix = "name a program";
	} else if (number == EACCES) {
		fix = "make it executable with chmod +x, or name its "
			"interpreter";
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--ddp=dry-run: %sthe "
			     "command could not be executed: %.200s: %s; %s",
			     task->has_prolog ? "without the task prolog, "
			     "which a dry run does not run, " : "", path, what,
			     fix);
}

int ddp_command_check(const struct ddp_task *task, struct ddp_error *error)
{
	char path[PATH_MAX], **argv = NULL;
	int argc = 0, number;

	if (!task->has_command || ddp_task_users(task, "SLURM_CONTAINER") ||
	    ddp_task_users(task, "SLURM_CONTAINER_ID") ||
	    spank_get_item(task->spank, S_JOB_ARGV, &argc, &argv) !=
	    ESPANK_SUCCESS || argc == 0)
		return 0;
	find_path(task, argv[0], path);
	number = try(path, argv, task->environment);
	return number ? fail(task, path, number, error) : 0;
}
