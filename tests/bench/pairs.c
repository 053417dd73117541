/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures two commands in pairs: pairs [-f FILE TEXT1 TEXT2] COUNT CMD1...
 * -- CMD2... . It runs them in the order 1 2, 2 1, 1 2, ..., so that a machine
 * that gets slower, and what a command leaves behind for the next one, count
 * for both. The first pair is not counted. Of each other pair it prints a line
 * with the milliseconds of CMD1 and of CMD2. With -f it writes TEXT1 or TEXT2
 * to FILE before each run, which is not measured. The commands' output is
 * thrown away. If a command fails, so does this.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct side {
	char **argv;
	const char *text;
	double ms;
};

static const char *file;		/* NULL without -f */

static void fail(const char *what, const char *which)
{
	fprintf(stderr, "pairs: %s %s\n", what, which);
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void write_file(const char *text)
{
	FILE *to = fopen(file, "w");

	if (!to || fprintf(to, "%s\n", text) < 0 || fclose(to) != 0)
		fail("cannot write", file);
}

static void run_side(struct side *side,
		     const posix_spawn_file_actions_t *actions)
{
	int status = -1;
	double begin;
	pid_t pid;

	if (file)
		write_file(side->text);
	begin = now_ms();
	if (posix_spawnp(&pid, side->argv[0], actions, NULL, side->argv,
			 environ) != 0)
		fail("cannot run", side->argv[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		fail("this has failed:", side->argv[0]);
	side->ms = now_ms() - begin;
}

static void run_pairs(struct side sides[2], long count)
{
	posix_spawn_file_actions_t actions;
	long i;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
					 O_WRONLY, 0);
	for (i = 0; i <= count; i++) {
		run_side(&sides[i % 2], &actions);
		run_side(&sides[1 - i % 2], &actions);
		if (i > 0)
			printf("%.3f %.3f\n", sides[0].ms, sides[1].ms);
	}
	posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char **argv)
{
	struct side sides[2] = { { .text = NULL } };
	long count;

	(void)argc;
	argv++;
	if (argv[0] && strcmp(argv[0], "-f") == 0 && argv[1] && argv[2] &&
	    argv[3]) {
		file = argv[1];
		sides[0].text = argv[2];
		sides[1].text = argv[3];
		argv += 4;
	}
	count = argv[0] ? atol(argv[0]) : 0;
	sides[0].argv = argv + 1;
	while (*argv && strcmp(*argv, "--") != 0)
		argv++;
	if (count < 1 || !*argv || sides[0].argv == argv || !argv[1])
		fail("[-f FILE TEXT1 TEXT2] COUNT CMD1... -- CMD2...:",
		     "wrong arguments");
	*argv = NULL;
	sides[1].argv = argv + 1;
	run_pairs(sides, count);
	return 0;
}
