/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of task_init in their order: in the task's own process, as the
 * user, when Slurm has set all that it sets for the task. What cannot be worked
 * out ends the task with one line, which srun then shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/options.h"
#include "options/plugin.h"
#include "stepd/stepd.h"
#include "stepd/task.h"
#include "topo/topo.h"
#include "util/file.h"
#include "util/text.h"

/* ---- a dry run's command */

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

/*
 * The interpreter that the first line of a script names; "": it is no script.
 * To the kernel a carriage return is part of the name.
 */
static void read_interpreter(const char *path, char name[256])
{
	char line[256];

	ddp_file_read_line(path, line, sizeof(line));
	name[0] = '\0';
	if (strncmp(line, "#!", 2) == 0)
		sscanf(line + 2, " %254[^ \t\n]", name);
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
		if (strchr(name, '\r')) {
			what = "its lines end as on Windows, with carriage "
				"returns";
			fix = "remove these, as with dos2unix";
		}
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

/*
 * Checks that the task's command could be executed here. The kernel is asked,
 * by a process that is stopped before the command's first instruction. Returns
 * 0, also where the kernel cannot be asked or the command is not known, as with
 * --multi-prog and in a container; or -1.
 */
static int check_command(const struct ddp_task *task, struct ddp_error *error)
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

/* ---- the task */

/*
 * End the task, in its own process: Slurm obeys no other way in all its
 * versions and settings. Only the first task of a node that fails prints why.
 * Where tasks share nothing they cannot tell which is the first: what all of
 * them find alike is then printed by local rank 0.
 */
__attribute__((noreturn)) static void refuse(const struct ddp_task *task,
					     const char *why)
{
	const char *rank = ddp_task_getenv(task, "SLURM_PROCID");
	const char *node = ddp_task_getenv(task, "SLURMD_NODENAME");
	const char *local = ddp_task_getenv(task, "SLURM_LOCALID");
	char text[1024];

	snprintf(text, sizeof(text), "rank %.16s on %.255s: %s",
		 rank ? rank : "?", node ? node : "?", why);
	if (ddp_node_fail(why, !task->alike || !local ||
			  strcmp(local, "0") == 0))
		dprintf(STDERR_FILENO, "slurm-ddp: %s\n",
			ddp_text_quote(text));
	_exit(DDP_REFUSED);
}

/*
 * Run ddp-info in place of the user's program: the first on PATH, as for the
 * user, or the one that was installed with this plugin.
 */
__attribute__((noreturn)) static void run_ddp_info(struct ddp_task *task)
{
	const char *folders = ddp_task_getenv(task, "PATH");
	char *argv[] = { (char *)"ddp-info", (char *)"--gather", NULL };
	char path[PATH_MAX], why[512];

	while (ddp_path_next(&folders, argv[0], path))
		execve(path, argv, task->environment);
	execve(DDP_BINDIR "/ddp-info", argv, task->environment);
	snprintf(why, sizeof(why), "--ddp=dry-run: there is no ddp-info in "
		 "PATH or as " DDP_BINDIR "/ddp-info (%s); install it on "
		 "every node", strerror(errno));
	task->alike = true;
	refuse(task, why);
}

/* Accelerate's launcher overrides ACCELERATE_USE_CPU, by which it is a rank. */
static int check_device(struct ddp_task *task, struct ddp_error *error)
{
	const char *name = ddp_task_getenv(task, DDP_TELL_NEEDS_GPU);

	task->vars.no_device = !ddp_topo_has_device("");
	if (!name || !task->vars.no_device)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%.64s finds no GPU "
			     "here, and would make a world of its own in each "
			     "task; give it --cpu, or --multi_gpu "
			     "--num_processes=RANKS_OF_A_NODE", name);
}

/*
 * Work out all that the task is to get. task.alike says in which part this is:
 * whether all tasks of the node find the same. Returns 0; -1; 1 if another task
 * says why all of them end.
 */
static int prepare(struct ddp_task *task, struct ddp_error *error)
{
	int rc;

	if (ddp_task_read(task, error) < 0)
		return -1;
	task->alike = true;
	if (check_device(task, error) < 0 ||
	    ddp_task_find_master(task, error) < 0)
		return -1;
	task->alike = false;
	rc = ddp_node_join(task, error);
	return rc != 0 ? rc : ddp_task_apply(task, error);
}

/* The site's defaults can depend on the partition. */
static void read_partition(const struct ddp_task *task)
{
	const char *told = ddp_task_getenv(task, DDP_TELL_PARTITION);

	ddp_options_partition(told ? told :
			      ddp_task_getenv(task, "SLURM_JOB_PARTITION"));
}

/*
 * A task prolog may put right what is wrong with the command. Then rank 0 alone
 * says what is wrong, and the dry run goes on.
 */
__attribute__((noreturn)) static void dry_run(struct ddp_task *task)
{
	struct ddp_error error;

	if (ddp_plugin.logs && ddp_logs_check(&error) < 0)
		refuse(task, error.text);
	if (check_command(task, &error) < 0) {
		if (!task->has_prolog)
			refuse(task, error.text);
		if (task->rank == 0)
			dprintf(STDERR_FILENO, "slurm-ddp: rank 0 on %s: %s\n",
				task->vars.rank.host,
				ddp_text_quote(error.text));
	}
	run_ddp_info(task);
}

void ddp_task_init(spank_t spank)
{
	struct ddp_task task = { .spank = spank };
	struct ddp_error error;
	int users, rc;

	if (!ddp_plugin.on)
		return;
	users = ddp_step_is_users(spank, &error);
	if (users == 0)
		return;
	rc = ddp_task_environment(&task, &error);
	read_partition(&task);
	task.alike = true;
	if (ddp_options_error())
		refuse(&task, ddp_options_error());
	task.alike = false;
	if (users > 0 && rc == 0)
		rc = prepare(&task, &error);
	if (rc > 0) {
		ddp_node_leave();
		_exit(1);
	}
	if (users < 0 || rc < 0)
		refuse(&task, error.text);
	if (ddp_plugin.dry_run)
		dry_run(&task);
	if (ddp_divert_output(&task, &error) < 0)
		refuse(&task, error.text);
	ddp_layout_destroy(task.layout);
	free(task.master);
	free(task.tf_config);
}
