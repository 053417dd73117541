/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one of Slurm's programs and reads what it prints. */
#define _GNU_SOURCE
#include "util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program beside this srun; else its name, to be sought on PATH. */
static const char *find_program(const char *name, char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (length <= 0)
		return name;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= size)
		return name;
	strcpy(slash + 1, name);
	return access(path, X_OK) == 0 ? path : name;
}

/*
 * setenv would change srun's own environment, too, perhaps while another of its
 * threads reads that. entry: of two of one name the first counts; or NULL.
 */
static char **copy_environment(const char *entry)
{
	size_t count = 0, i;
	char **env;

	while (environ[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	count = 0;
	if (env && entry)
		env[count++] = (char *)entry;
	for (i = 0; env && environ[i]; i++)
		if (strncmp(environ[i], "SQUEUE_", 7) != 0)
			env[count++] = environ[i];
	return env;
}

static pid_t start_program(const char *const argv[], const char *entry,
			   bool quiet, int *out)
{
	char **env = copy_environment(entry);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char path[PATH_MAX];
	sigset_t none;
	int pipes[2], rc;
	pid_t pid;

	if (!env || pipe2(pipes, O_CLOEXEC) < 0) {
		free(env);
		return -1;
	}
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
						 "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(&pid, find_program(argv[0], path, sizeof(path)),
			  &actions, &attributes, (char *const *)argv, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	free(env);
	if (rc) {
		close(pipes[0]);
		errno = rc;
		return -1;
	}
	*out = pipes[0];
	return pid;
}

pid_t ddp_program_start(const char *const argv[], const char *entry, int *out)
{
	return start_program(argv, entry, true, out);
}

/* All that it prints; NULL if that is nothing. */
static char *read_all(int out)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = fdopen(out, "r");

	if (!stream || getdelim(&text, &size, '\0', stream) < 0) {
		free(text);
		text = NULL;
	}
	if (stream)
		fclose(stream);
	else
		close(out);
	return text;
}

char *ddp_program_read(const char *const argv[])
{
	/* If srun was started to ignore SIGCHLD, there would be no status. */
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction before;
	char *text = NULL;
	int out, status = -1;
	pid_t pid;

	sigaction(SIGCHLD, &usual, &before);
	pid = start_program(argv, NULL, false, &out);
	if (pid >= 0) {
		text = read_all(out);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	sigaction(SIGCHLD, &before, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return text;
	free(text);
	return NULL;
}
