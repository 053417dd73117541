/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slurmstepd: either with one task in its own process, or with a process for
 * each task; these share what was mapped before, and print what their programs
 * would see.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define TASKS_MAX 16
#define LATE_US 100000

static struct sibling {
	char *words;		/* what it has of its own */
	pid_t pid;		/* 0: it was never started */
	int out;
} siblings[TASKS_MAX];

/* What the program of a task does. */
static struct {
	const char *error;	/* SECONDS:TEXT; NULL */
	int status, signal;	/* with which it ends */
} program;

static void env_copy(void)
{
	size_t count = 0, i;

	while (environ[count])
		count++;
	fake.env = calloc(count + 1, sizeof(*fake.env));
	for (i = 0; i < count; i++)
		fake.env[i] = strdup(environ[i]);
}

static void number_set(const char *name, uint32_t number)
{
	char *entry;

	if (asprintf(&entry, "%s=%u", name, number) < 0)
		abort();
	fake_env_set(name, entry);
}

/* A word of a task's own. */
static void word_apply(const char *word)
{
	char *name = strndup(word, strcspn(word, "="));

	if (word[0] == '-')
		fake_env_set(word + 1, NULL);
	else if (word[0] != '#')
		fake_env_set(name, strdup(word));
	else if (strcmp(word, "#late") == 0)
		usleep(LATE_US);
	else if (strcmp(word, "#dies") == 0) {
		fake_kernel_come();
		raise(SIGKILL);
	} else if (strncmp(word, "#writes=", 8) == 0)
		program.error = word + 8;
	else if (strcmp(word, "#children") != 0 &&
		 sscanf(word, "#fail=%u", &fake.fail) != 1 &&
		 sscanf(word, "#exits=%d", &program.status) != 1 &&
		 sscanf(word, "#killed=%d", &program.signal) != 1 &&
		 !fake_net_set(word) && !fake_kernel_set(word))
		abort();
	free(name);
}

/* Write an error file, as of a time. */
static void error_write(const char *path)
{
	struct timespec times[2] = { 0 };
	FILE *file = fopen(path, "w");
	char *text;
	double at = strtod(program.error, &text);

	times[1].tv_sec = (time_t)at;
	times[1].tv_nsec = (long)((at - (double)times[1].tv_sec) * 1e9);
	if (!file || fputs(text + 1, file) < 0 || fflush(file) ||
	    futimens(fileno(file), times) || fclose(file))
		abort();
}

/* What the program does, for which task_init has prepared all. */
__attribute__((noreturn)) static void program_run(void)
{
	static const char name[] = "TORCHELASTIC_ERROR_FILE=";
	char **entry;

	for (entry = fake.env; *entry && program.error; entry++)
		if (strncmp(*entry, name, sizeof(name) - 1) == 0)
			error_write(*entry + sizeof(name) - 1);
	fflush(stdout);
	if (program.signal)
		raise(program.signal);
	_exit(program.status);
}

/* The program "shout" says that it runs. */
static void task_walk(void)
{
	walk_hook("slurm_spank_task_init_privileged");
	walk_hook("slurm_spank_task_init");
	if (strcmp(fake.argv[0], "shout") == 0)
		dprintf(STDERR_FILENO, "a program runs\n");
	walk_print(fake.env);
}

__attribute__((noreturn)) static void sibling_run(const struct sibling *self,
						  uint32_t local,
						  uint32_t first)
{
	char *word, *save;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(30);
	dup2(self->out, STDOUT_FILENO);
	number_set("SLURM_LOCALID", local);
	number_set("SLURM_PROCID", first + local);
	for (word = strtok_r(self->words, "|", &save); word;
	     word = strtok_r(NULL, "|", &save))
		word_apply(word);
	task_walk();
	program_run();
}

/* Print what a task has printed, with its local rank in front of each line. */
static void sibling_print(const struct sibling *self, uint32_t local,
			  int status)
{
	FILE *file = fdopen(self->out, "r");
	size_t size = 0;
	char *line = NULL;

	rewind(file);
	while (getline(&line, &size, file) > 0)
		printf("%u:%s", local, line);
	free(line);
	fclose(file);
	printf("%u:#status=%d\n", local, status);
}

static int sibling_end(struct sibling *self, uint32_t local)
{
	int status;

	if (!self->pid || waitpid(self->pid, &fake.exit_status, 0) < 0)
		return 0;
	while (strstr(self->words, "#children") && wait(NULL) > 0)
		;
	fake.task = (int)local;
	walk_hook("slurm_spank_task_exit");
	status = WIFEXITED(fake.exit_status) ? WEXITSTATUS(fake.exit_status) :
		128 + WTERMSIG(fake.exit_status);
	sibling_print(self, local, status);
	return status == 128 + SIGKILL ? 0 : status;
}

/* Read the words of the tasks: one text for all, or one for each. */
static void siblings_read(char *text)
{
	char *save, *words = strtok_r(text, ";", &save);
	uint32_t i;

	for (i = 0; i < fake.local_tasks; i++) {
		siblings[i].words = strdup(words);
		words = strtok_r(NULL, ";", &save);
		if (!words)
			words = siblings[0].words;
	}
}

static int siblings_walk(char *text)
{
	const char *first = getenv("SLURM_PROCID");
	int status = 0, ended;
	bool hasty = strstr(text, "#dies") || strstr(text, "#absent") ||
		     strstr(text, "#lethal");
	uint32_t i, come = 0;

	siblings_read(text);
	for (i = 0; i < fake.local_tasks; i++)
		come += strcmp(siblings[i].words, "#absent") != 0;
	if (hasty)
		fake_kernel_hurry(come);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < fake.local_tasks; i++) {
		if (strcmp(siblings[i].words, "#absent") == 0)
			continue;
		siblings[i].out = memfd_create("task", MFD_CLOEXEC);
		siblings[i].pid = fork();
		if (siblings[i].pid == 0)
			sibling_run(&siblings[i], i, first ?
				    (uint32_t)atol(first) : 0);
		walk_hook("slurm_spank_task_post_fork");
	}
	/* When the first end is seen, all have written what they write. */
	for (i = 0; i < fake.local_tasks; i++)
		if (siblings[i].pid)
			waitid(P_PID, (id_t)siblings[i].pid, NULL,
			       WEXITED | WNOWAIT);
	for (i = 0; i < fake.local_tasks; i++) {
		ended = sibling_end(&siblings[i], i);
		status = ended > status ? ended : status;
	}
	printf("#naps=%u\n", fake_kernel_naps());
	if (waitpid(-1, NULL, WNOHANG) == 0)
		printf("#agent=alive\n");
	return status;
}

int walk_stepd(int argc, char **argv)
{
	char *tasks = getenv("FAKE_TASKS");
	int at, status = 0;

	if (argc < 6)
		return 97;
	fake.context = S_CTX_REMOTE;
	fake.fail = (unsigned int)atoi(argv[1]);
	fake.step_id = (uint32_t)strtoul(argv[2], NULL, 0);
	fake.local_tasks = (uint32_t)atoi(argv[3]);
	fake.all_tasks = (uint32_t)atoi(argv[4]);
	if (tasks && fake.local_tasks > TASKS_MAX)
		return 97;
	env_copy();
	fake_env_set("FAKE_TASKS", NULL);

	walk_load();
	walk_hook("slurm_spank_init");
	for (at = 5; at < argc && argv[at][0] == '-'; at++)
		walk_option(argv[at], 1);
	fake.argc = argc - at;
	fake.argv = argv + at;
	walk_hook("slurm_spank_init_post_opt");
	walk_hook("slurm_spank_user_init");
	/* This process is both slurmstepd and its task if there are no tasks. No
	 * task ends then, as an agent would wait for the task's program. */
	if (tasks)
		status = siblings_walk(tasks);
	else
		task_walk();
	walk_hook("slurm_spank_exit");
	return status;
}
