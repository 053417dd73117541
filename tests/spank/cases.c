/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a case in a process of its own, with exactly the case's environment
 * and one CPU, and compares what it printed. TAP on stdout.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define WORDS_MAX 64

const char *cases_dir;
static unsigned int count, failures;

/* Split a copy of text; one piece after another, then NULL. */
static size_t split(const char *text, const char *at, char **pieces)
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

static void pieces_free(char **pieces)
{
	for (; *pieces; pieces++)
		free(*pieces);
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* The later of two entries of one name stands; "-NAME" removes both. */
static void env_make(const char *text, char **env)
{
	char *pieces[WORDS_MAX];
	size_t n = split(text, "|", pieces), used = 0, i, j;

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
	pieces_free(pieces);
}

/* A file of the directory in which a case's program lives. */
static const char *path_of(const struct spank_case *test, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", cases_dir,
		 test->dir ? test->dir : "full", file);
	return path;
}

static void conf_write(const struct spank_case *test)
{
	FILE *file = fopen(path_of(test, "plugstack.conf"), "w");

	if (!file || fprintf(file, "%s\n", test->conf ? test->conf :
			     "optional spank_ddp.so") < 0 || fclose(file))
		abort();
}

static void child(const struct spank_case *test, int out, int err)
{
	char *argv[WORDS_MAX], *env[WORDS_MAX];
	cpu_set_t allowed, one;
	size_t cpu;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		abort();
	for (cpu = 0; !CPU_ISSET(cpu, &allowed); cpu++)
		;
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		abort();
	alarm(30);	/* for one that runs itself again for ever */
	split(test->command, " ", argv);
	env_make(test->env, env);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		execve(path_of(test, "srun"), argv, env);
	_exit(96);
}

static void slurp(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	text[length < 0 ? 0 : length] = '\0';
	close(fd);
}

const struct outcome *case_try(const struct spank_case *test)
{
	static struct outcome outcome;
	int out = memfd_create("out", MFD_CLOEXEC), status;
	int err = memfd_create("err", MFD_CLOEXEC);
	pid_t pid;

	conf_write(test);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(test, out, err);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) :
		128 + WTERMSIG(status);
	slurp(out, outcome.out, sizeof(outcome.out));
	slurp(err, outcome.err, sizeof(outcome.err));
	return &outcome;
}

const char *outcome_get(const struct outcome *outcome, const char *name)
{
	static char value[4096];
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

/* Whether a run printed an entry; whether not, where "-" precedes it. */
static bool entry_fits(const struct outcome *outcome, const char *entry)
{
	char name[256];
	const char *value;

	if (entry[0] == '-')
		return !outcome_get(outcome, entry + 1);
	snprintf(name, sizeof(name), "%.*s", (int)name_length(entry), entry);
	value = outcome_get(outcome, name);
	return value && strcmp(value, entry + strlen(name) + 1) == 0;
}

static bool entries_fit(const struct outcome *outcome, char **entries,
			const char **missing)
{
	for (; *entries; entries++) {
		*missing = *entries;
		if (!entry_fits(outcome, *entries))
			return false;
	}
	return true;
}

static bool output_fits(const struct spank_case *test,
			const struct outcome *outcome, char *why, size_t size)
{
	bool same = test->want && strcmp(test->want, "same") == 0;
	const char *missing = "", *at;
	char *entries[WORDS_MAX];
	size_t lines = 0, n = 0;
	bool fits;

	if (same)
		env_make(test->env, entries);
	else
		split(test->want, "|", entries);
	fits = entries_fit(outcome, entries, &missing);
	snprintf(why, size, "not in the output: %s", missing);
	for (at = outcome->out; (at = strchr(at, '\n')); at++)
		lines++;
	while (entries[n])
		n++;
	if (same && fits && (lines != n + 3 ||	/* and three with # */
			     !entry_fits(outcome, "#items=0"))) {
		fits = false;
		snprintf(why, size, "the environment has changed");
	}
	pieces_free(entries);
	return fits;
}

static bool is_one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end && end > text && end[1] == '\0';
}

void case_report(bool good, const char *name, const char *why)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++count, name);
	if (!good)
		printf("# %s\n", why);
	failures += !good;
}

static void comment(const char *title, const char *text)
{
	printf("# %s\n", title);
	for (; *text; text += strspn(text, "\n")) {
		printf("#   %.*s\n", (int)strcspn(text, "\n"), text);
		text += strcspn(text, "\n");
	}
}

void case_run(const struct spank_case *test)
{
	const struct outcome *outcome = case_try(test);
	int status = test->refusal ? 1 : test->status;
	char why[256];
	bool good;

	snprintf(why, sizeof(why), "exit status %d, not %d", outcome->status,
		 status);
	good = outcome->status == status &&
	       output_fits(test, outcome, why, sizeof(why));
	if (good && test->refusal)
		good = !*outcome->out && is_one_line(outcome->err) &&
		       strstr(outcome->err, "slurm-ddp: ") &&
		       strstr(outcome->err, test->refusal);
	else if (good)
		good = strcmp(outcome->err, test->err ? test->err : "") == 0;
	case_report(good, test->name, why);
	if (!good) {
		comment("stdout:", outcome->out);
		comment("stderr:", outcome->err);
	}
}

void cases_run(const struct spank_case *tests, unsigned int n)
{
	while (n--)
		case_run(tests++);
}

int cases_end(void)
{
	printf("1..%u\n", count);
	return failures ? 1 : 0;
}
