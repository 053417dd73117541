/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one of Slurm's programs and reads what it prints. */
#define _GNU_SOURCE
#include "util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/file.h"

const char *ddp_program_find(const char *name, char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (length <= 0)
		return name;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= PATH_MAX)
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

pid_t ddp_program_start(const char *program, const char *const argv[],
			const char *entry, int err, int *out)
{
	char **env = copy_environment(entry);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int pipes[2], rc;
	pid_t pid;

	if (!env || pipe2(pipes, O_CLOEXEC) < 0) {
		free(env);
		return -1;
	}
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	if (err >= 0 && err != STDERR_FILENO)
		posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
	else if (err < 0)
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
						 "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(&pid, program, &actions, &attributes,
			  (char *const *)argv, env);
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

char *ddp_program_read(const char *const argv[], int err)
{
	/* If srun was started to ignore SIGCHLD, there would be no status. */
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	struct sigaction before;
	char path[PATH_MAX], *text = NULL;
	int out, status = -1;
	size_t length = 0;
	pid_t pid;

	sigaction(SIGCHLD, &usual, &before);
	pid = ddp_program_start(ddp_program_find(argv[0], path), argv, NULL,
				err, &out);
	if (pid >= 0) {
		text = ddp_file_read_fd(out, SIZE_MAX, &length);
		close(out);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	sigaction(SIGCHLD, &before, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && length > 0)
		return text;
	free(text);
	return NULL;
}
