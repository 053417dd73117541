/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the step of --ddp-check, and reads what it prints. */
#define _GNU_SOURCE
#include "srun/preflight_step.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/plugin.h"
#include "srun/again.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "srun/mpi.h"
#include "supervisor/threads.h"
#include "util/path.h"
#include "util/text.h"

enum { SIGNALS_MS = 100, TEXT_MAX = 1 << 20, COMMAND_MAX = 4 };

bool ddp_preflight_find(char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	while (ddp_path_next(&folders, "ddp-bench", path))
		if (*path == '/' && access(path, X_OK) == 0)
			return true;
	return false;
}

/*
 * Returns true if a word is this option, or what getopt takes for it: the first
 * bytes of it, least or more. Sets *next if its value is the next word.
 */
static bool is_option(const char *word, const char *option, size_t least,
		      bool *next)
{
	size_t length = strcspn(word, "=");

	*next = word[length] == '\0';
	return length >= least && length <= strlen(option) &&
	       strncmp(word, option, length) == 0;
}

/* These would put ddp-bench's output somewhere else. */
static bool hides_output(const char *word, bool *next)
{
	return is_option(word, "--ddp-logs", strlen("--ddp-l"), next) ||
	       is_option(word, "--ddp-show", strlen("--ddp-sh"), next);
}

/* The command, with its arguments; at most COMMAND_MAX. Returns how many. */
static size_t add_command(char **to, char *program)
{
	static char seconds[16];
	size_t count = 0;

	to[count++] = program;
	to[count++] = "--preflight";
	if (ddp_plugin.check_s == 0)
		return count;
	snprintf(seconds, sizeof(seconds), "%u", ddp_plugin.check_s);
	to[count++] = "--limit";
	to[count++] = seconds;
	return count;
}

/* Like ours, with another command; what comes last counts. */
static char **make_arguments(char *program, const struct ddp_restart *restart)
{
	static char *const last[] = {
		"--output=all", "--error=all", "--input=none"
	};
	const size_t count = sizeof(last) / sizeof(last[0]);
	char **argv = ddp_arguments_read(), **made;
	size_t end = (size_t)optind, to = 0, i;
	bool next;

	made = argv ? calloc(end + count + DDP_AGAIN_WIDE + COMMAND_MAX + 2,
			     sizeof(*made)) : NULL;
	if (!made)
		ddp_srun_refuse("cannot read srun's arguments: %s",
				strerror(errno));
	for (i = 0; i < end && argv[i]; i++)
		if (hides_output(argv[i], &next))
			i += next;
		else if (strcmp(argv[i], "--") != 0)
			made[to++] = argv[i];
	for (i = 0; i < count; i++)
		made[to++] = last[i];
	if (restart)
		to += ddp_again_widen(restart, made + to);
	if (restart && restart->overlap)
		made[to++] = (char *)"--overlap";
	add_command(made + to, program);
	return made;
}

static _Noreturn void run_srun(char **argv, pid_t parent, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	ddp_output_drop();
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	unsetenv(DDP_HANDED "ddp_logs");
	unsetenv(DDP_HANDED "ddp_show");
	unsetenv(DDP_INHERITED "ddp_logs");
	unsetenv(DDP_INHERITED "ddp_show");
	unsetenv("NCCL_DEBUG");
	ddp_mpi_restore();
	ddp_rerun_add(DDP_TELL_CHECKS, "1");
	ddp_srun.checks = true;
	ddp_rerun_exec_arguments(0, argv);
}

/* A signal that waits for us is the other srun's, too. Returns it, or was. */
static int pass_signals(pid_t pid, const sigset_t *signals, int was)
{
	const struct timespec now = { 0, 0 };
	int number = sigtimedwait(signals, NULL, &now);

	if (number <= 0)
		return was;
	kill(pid, number);
	return number;
}

/* The verdict comes last: where there is too much, what is older goes. */
static void keep(struct ddp_text *text, const char *bytes, size_t length)
{
	ddp_text_add_bytes(text, bytes, length);
	if (text->failed || text->length < 2 * (size_t)TEXT_MAX)
		return;
	memmove(text->data, text->data + text->length - TEXT_MAX, TEXT_MAX);
	text->length = TEXT_MAX;
}

/* Returns the last signal that came meanwhile, or 0. */
static int read_all(pid_t pid, int out, struct ddp_text *text)
{
	struct pollfd poller = { out, POLLIN, 0 };
	char buffer[4096];
	sigset_t signals, before;
	ssize_t got = 1;
	int number = 0;

	/*
	 * A terminal sends the others to the other srun, too. If a thread of
	 * srun takes these, we end, and by that the other srun does.
	 */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	ddp_threads_block(&signals, NULL);
	while (got > 0) {
		number = pass_signals(pid, &signals, number);
		if (poll(&poller, 1, SIGNALS_MS) <= 0)
			continue;
		got = read(out, buffer, sizeof(buffer));
		if (got > 0)
			keep(text, buffer, (size_t)got);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return number;
}

char *ddp_preflight_run(char *program, const struct ddp_restart *restart,
			int *status, int *number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	char **argv = make_arguments(program, restart);
	struct ddp_text text = { 0 };
	pid_t parent = getpid(), pid;
	int out[2];

	sigaction(SIGCHLD, &usual, NULL);
	if (pipe(out) < 0 || (pid = fork()) < 0)
		ddp_srun_refuse("cannot start srun: %s", strerror(errno));
	if (pid == 0) {
		close(out[0]);
		run_srun(argv, parent, out[1]);
	}
	close(out[1]);
	*number = read_all(pid, out[0], &text);
	close(out[0]);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	ddp_text_add_bytes(&text, "", 1);
	return ddp_text_finish(&text);
}
