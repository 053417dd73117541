/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slurmstepd of one node, as far as the agent can see it: it loads the real
 * plugin, starts real programs as tasks, and calls the plugin's hooks in Slurm's
 * order. Nothing of the kernel or the network is faked.
 *
 *     step TASKS [--ddp-option...] COMMAND [ARGUMENT...]
 *
 * The environment describes the step. What begins with STEP is for this program,
 * and tasks do not get it:
 *
 *     STEP_CONTAIN  slurmstepd calls the hook of a task's end in a process with the
 *                same memory and descriptors of its own, as with contain_spank
 *     STEP_HOLD  slurmstepd does not tell how tasks end while this file exists
 *     STEP_LOG   a file for a line "LOCALID STATUS MS": what slurmstepd was told
 *                of a task, and how long the plugin then kept it. The time runs
 *                before anybody else can see that the task is gone.
 *     STEP_STAY  slurmstepd does not end while this file exists, as when it seeks an
 *                srun that is gone
 *     STEP_USER  the number of the user and the group that the tasks have
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../spank/host.h"

enum { TASKS_MAX = 256, LOOK_US = 2000, PATIENCE_S = 600 };

static pid_t pids[TASKS_MAX];
static const char *hold, *stay, *user, *contained;
static alignas(16) char stack[1 << 20];
static int log_fd = -1;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void copy_environment(void)
{
	size_t count = 0, kept = 0, i;

	while (environ[count])
		count++;
	fake.env = calloc(count + 1, sizeof(*fake.env));
	for (i = 0; i < count; i++)
		if (strncmp(environ[i], "STEP_", 5) != 0)
			fake.env[kept++] = strdup(environ[i]);
}

static void set_number(const char *name, int number)
{
	char *entry;

	if (asprintf(&entry, "%s=%d", name, number) < 0)
		abort();
	fake_env_set(name, entry);
}

static void become_user(void)
{
	if (user && (setgroups(0, NULL) < 0 ||
		     setresgid(fake.gid, fake.gid, fake.gid) < 0 ||
		     setresuid(fake.uid, fake.uid, fake.uid) < 0))
		abort();
}

__attribute__((noreturn)) static void run_task(int local)
{
	set_number("SLURM_LOCALID", local);
	set_number("SLURM_PROCID", local);
	become_user();
	walk_hook("slurm_spank_task_init");
	execvpe(fake.argv[0], fake.argv, fake.env);
	_exit(127);
}

/* They are in slurmstepd's session, by which the agent finds all processes. */
static void start_tasks(void)
{
	int local;

	if (setsid() < 0)
		abort();
	for (local = 0; local < (int)fake.local_tasks; local++) {
		pids[local] = fork();
		if (pids[local] == 0)
			run_task(local);
	}
}

static void wait_while(const char *file)
{
	while (file && access(file, F_OK) == 0)
		usleep(LOOK_US);
}

static int call_exit(void *nothing)
{
	(void)nothing;
	walk_hook("slurm_spank_task_exit");
	return 0;
}

static void end_task(int local, int status, int64_t begin)
{
	wait_while(hold);
	fake.task = local;
	fake.exit_status = status;
	if (!contained)
		call_exit(NULL);
	else if (waitpid(clone(call_exit, stack + sizeof(stack), CLONE_VM |
			       SIGCHLD, NULL), NULL, 0) < 0)
		abort();
	if (log_fd >= 0)
		dprintf(log_fd, "%d %d %d\n", local, status,
			(int)(now_ms() - begin));
}

static void await_tasks(void)
{
	uint32_t left = fake.local_tasks;
	int status, local;
	siginfo_t info;
	int64_t begin;
	pid_t pid;

	while (left > 0) {
		while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0)
			if (errno != EINTR)
				abort();
		begin = now_ms();
		pid = waitpid(info.si_pid, &status, 0);
		for (local = 0; local < (int)fake.local_tasks; local++)
			if (pids[local] == pid) {
				end_task(local, status, begin);
				left--;
			}
	}
}

int main(int argc, char **argv)
{
	int at;

	if (argc < 3)
		return 2;
	alarm(PATIENCE_S);	/* for one that would never end */
	fake.program = "slurmstepd";
	fake.context = S_CTX_REMOTE;
	/* Slurm tells the component's number in a heterogeneous job. */
	fake.job_id = (uint32_t)atol(getenv("SLURM_JOB_ID")) + 1;
	fake.step_id = (uint32_t)atol(getenv("SLURM_STEP_ID"));
	fake.local_tasks = fake.all_tasks = (uint32_t)atol(argv[1]);
	fake.nodes = 1;
	hold = getenv("STEP_HOLD");
	stay = getenv("STEP_STAY");
	contained = getenv("STEP_CONTAIN");
	user = getenv("STEP_USER");
	fake.uid = user ? (uid_t)atol(user) : getuid();
	fake.gid = user ? (gid_t)atol(user) : getgid();
	if (fake.local_tasks < 1 || fake.local_tasks > TASKS_MAX)
		return 2;
	if (getenv("STEP_LOG"))
		log_fd = open(getenv("STEP_LOG"), O_WRONLY | O_CREAT |
			      O_APPEND | O_CLOEXEC, 0666);
	copy_environment();
	prctl(PR_SET_CHILD_SUBREAPER, 1);

	walk_load();
	walk_hook("slurm_spank_init");
	for (at = 2; at < argc && strncmp(argv[at], "--", 2) == 0; at++)
		walk_option(argv[at], 1);
	fake.argc = argc - at;
	fake.argv = argv + at;
	walk_hook("slurm_spank_init_post_opt");
	start_tasks();
	await_tasks();
	wait_while(stay);
	walk_hook("slurm_spank_exit");
	return 0;
}
