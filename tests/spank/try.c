/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a case in a process of its own, with exactly the case's environment.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

const char *cases_dir;

size_t words_split(const char *text, const char *at, char **pieces)
{
	char *copy = strdup(text ? text : ""), *piece, *save;
	size_t n = 0;

	for (piece = strtok_r(copy, at, &save); piece && n < WORDS_MAX - 1;
	     piece = strtok_r(NULL, at, &save))
		pieces[n++] = strdup(piece);
	pieces[n] = NULL;
	free(copy);
	return n;
}

void words_free(char **pieces)
{
	for (; *pieces; pieces++)
		free(*pieces);
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* Copy a text, with the test's directory for each '@' before a '/'. */
static char *expand(const char *text)
{
	size_t room = strlen(text) + 1, used = 0;
	const char *at;
	char *out;
	bool is;

	for (at = strstr(text, "@/"); at; at = strstr(at + 1, "@/"))
		room += strlen(cases_dir);
	out = malloc(room);
	for (; *text; text++) {
		is = strncmp(text, "@/", 2) == 0;
		used += (size_t)snprintf(out + used, room - used, "%.*s",
					 is ? PATH_MAX : 1,
					 is ? cases_dir : text);
	}
	out[used] = '\0';
	return out;
}

void env_make(const char *text, char **env)
{
	char *pieces[WORDS_MAX], *whole = expand(text ? text : "");
	size_t n = words_split(whole, "|", pieces), used = 0, i, j;

	free(whole);

	for (i = 0; i < n; i++) {
		const char *name = pieces[i] + (pieces[i][0] == '-');
		size_t length = name_length(name);

		for (j = 0; j < used; j++) {
			if (name_length(env[j]) != length ||
			    strncmp(env[j], name, length) != 0)
				continue;
			free(env[j]);
			env[j] = env[--used];
			break;
		}
		if (pieces[i][0] != '-')
			env[used++] = strdup(pieces[i]);
	}
	env[used] = NULL;
	words_free(pieces);
}

/* The path of a file beside the case's program. */
static const char *path_of(const struct spank_case *test, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", cases_dir,
		 test->dir ? test->dir : "full", file);
	return path;
}

static void conf_write(const struct spank_case *test)
{
	char *text = expand(test->conf ? test->conf : "optional spank_ddp.so");
	FILE *file = fopen(path_of(test, "plugstack.conf"), "w");

	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file))
		abort();
	free(text);
}

static void child(const struct spank_case *test, int out, int err)
{
	char *argv[WORDS_MAX], *env[WORDS_MAX + 2];
	size_t used = 0;

	alarm(30);	/* for one that runs itself again for ever */
	words_split(test->command, " ", argv);
	env_make(test->env, env);
	while (env[used])
		used++;
	if (test->tasks &&
	    asprintf(&env[used++], "FAKE_TASKS=%s", test->tasks) < 0)
		abort();
	env[used] = NULL;
	if (test->childless)
		signal(SIGCHLD, SIG_IGN);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0 &&
	    chdir(cases_dir) == 0)
		execve(path_of(test, "srun"), argv, env);
	_exit(96);
}

/* Read a pipe of packets, in which one read gets what one write wrote. */
static void packets_read(int fd, struct outcome *outcome)
{
	size_t have = 0, room = sizeof(outcome->err) - 1;
	ssize_t got = 1;

	outcome->writes = 0;
	while (got > 0 && have < room) {
		got = read(fd, outcome->err + have, room - have);
		have += got > 0 ? (size_t)got : 0;
		outcome->writes += got > 0;
	}
	outcome->err[have] = '\0';
	close(fd);
}

static void slurp(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	text[length < 0 ? 0 : length] = '\0';
	close(fd);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const struct outcome *case_try(const struct spank_case *test)
{
	static struct outcome outcome;
	int out = memfd_create("out", MFD_CLOEXEC), err[2], status;
	uint64_t start = now_ms();
	pid_t pid;

	conf_write(test);
	fflush(stdout);
	if (pipe2(err, O_CLOEXEC | O_DIRECT) < 0)
		abort();
	pid = fork();
	if (pid == 0)
		child(test, out, err[1]);
	close(err[1]);
	packets_read(err[0], &outcome);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	outcome.took_ms = now_ms() - start;
	outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) :
		128 + WTERMSIG(status);
	slurp(out, outcome.out, sizeof(outcome.out));
	return &outcome;
}

const char *outcome_get(const struct outcome *outcome, const char *name)
{
	static char value[1 << 18];
	size_t length = strlen(name);
	const char *line, *end;

	for (line = outcome->out; (end = strchr(line, '\n')); line = end + 1) {
		if (strncmp(line, name, length) == 0 && line[length] == '=') {
			snprintf(value, sizeof(value), "%.*s",
				 (int)(end - line) - (int)length - 1,
				 line + length + 1);
			return value;
		}
	}
	return NULL;
}
