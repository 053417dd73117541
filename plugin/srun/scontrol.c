/* SPDX-License-Identifier: BSD-3-Clause */
/* The questions that the plugin has for Slurm's controller, by scontrol. */
#define _GNU_SOURCE
#include "srun/scontrol.h"

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

#include "layout/gres.h"

/* The scontrol that was installed with this srun; else the one on PATH. */
static const char *find_scontrol(char *path, size_t size)
{
	static const char name[] = "scontrol";
	ssize_t length = readlink("/proc/self/exe", path, size - sizeof(name));
	char *slash;

	if (length > 0) {
		path[length] = '\0';
		slash = strrchr(path, '/');
		memcpy(slash + 1, name, sizeof(name));
		if (access(path, X_OK) == 0)
			return path;
	}
	return name;
}

/* scontrol -d -o show WHAT ID */
static pid_t start_scontrol(const char *what, const char *id, int *out)
{
	char path[PATH_MAX], *argv[] = { (char *)"scontrol", (char *)"-d",
		(char *)"-o", (char *)"show", (char *)what, (char *)id, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int pipes[2], rc;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawnp(&pid, find_scontrol(path, sizeof(path)), &actions,
			  &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[1]);
	if (rc) {
		close(pipes[0]);
		errno = rc;
		return -1;
	}
	*out = pipes[0];
	return pid;
}

/* All that scontrol prints, the caller's to free; NULL if it fails. */
static char *read_scontrol(const char *what, const char *id)
{
	char *text = NULL;
	size_t size = 0;
	int out, status;
	pid_t pid = start_scontrol(what, id, &out);
	FILE *stream;

	if (pid < 0)
		return NULL;
	stream = fdopen(out, "r");
	if (!stream || getdelim(&text, &size, '\0', stream) < 0) {
		free(text);
		text = NULL;
	}
	if (stream)
		fclose(stream);
	else
		close(out);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}

/* scontrol prints one word "GRES=..." for each group of like nodes. */
static int parse_answer(char *text, const char *job_id, uint32_t *gpus,
			struct ddp_error *error)
{
	uint32_t group, groups = 0, first = 0;
	bool of_nodes = false;
	char *word, *save;

	for (word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		of_nodes |= strncmp(word, "Nodes=", 6) == 0;
		if (!of_nodes || strncmp(word, "GRES=", 5) != 0)
			continue;
		of_nodes = false;
		if (ddp_gres_count_gpus(word + 5, &group, error) < 0)
			return -1;
		if (groups++ == 0)
			first = group;
		else if (group != first)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "job %.64s has %u GPUs on one "
					     "node and %u on another; give "
					     "the number of tasks with -n",
					     job_id, first, group);
	}
	*gpus = first;
	return 0;
}

int ddp_scontrol_count_gpus(const char *job_id, uint32_t *gpus,
			    struct ddp_error *error)
{
	char *text = read_scontrol("job", job_id);
	int rc;

	if (!text)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "scontrol does not tell how many GPUs job "
				     "%.64s has; give the number of tasks with "
				     "-n", job_id);
	rc = parse_answer(text, job_id, gpus, error);
	free(text);
	return rc;
}

char *ddp_scontrol_show_step(uint32_t job_id, uint32_t step_id)
{
	char id[32];

	snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	return read_scontrol("step", id);
}

const char *ddp_scontrol_find_word(const char *text, const char *name,
				   int *length)
{
	size_t name_length = strlen(name);
	const char *at = text;

	*length = 0;
	while (at && (at = strstr(at, name))) {
		if ((at == text || at[-1] == ' ') && at[name_length] == '=') {
			at += name_length + 1;
			*length = (int)strcspn(at, " \n");
			return at;
		}
		at += name_length;
	}
	return "";
}
