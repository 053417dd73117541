/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-check. The same srun runs, with the same options, but with ddp-bench as
 * its command, and what it prints is read here: lines of ddp-bench's are shown.
 */
#define _GNU_SOURCE
#include "srun/preflight.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout/text.h"
#include "plugin.h"
#include "srun/again.h"
#include "srun/arguments.h"
#include "srun/cli.h"
#include "srun/context.h"
#include "srun/mpi.h"
#include "srun/output.h"
#include "srun/rerun.h"

#define PROGRAM "ddp-bench"
#define PASSED PROGRAM ": preflight passed"
#define FAILED PROGRAM ": preflight failed: "
#define EXCLUDE "--exclude="
/* Options as srun hands them to what it runs, and as a job hands them on. */
#define HANDED "_SLURM_SPANK_OPTION_ddp_ddp_"
#define INHERITED "SLURM_SPANK_" HANDED

enum { SIGNALS_MS = 100, TEXT_MAX = 1 << 20, COMMAND_MAX = 4 };

static void refuse_what_cannot_be(void)
{
	if (ddp_srun.expected > 1)
		ddp_srun_refuse("--ddp-check: cannot check a heterogeneous "
				"step; leave it out");
	if (ddp_cli_isset("pty") || ddp_cli_isset("multi-prog"))
		ddp_srun_refuse("--ddp-check: starts another command first, "
				"and --%s does not fit it; leave it out, or "
				"run srun --ddp ddp-bench --preflight before",
				ddp_cli_isset("pty") ? "pty" : "multi-prog");
	if (!ddp_cli_get("jobid") && !getenv("SLURM_JOB_ID"))
		ddp_srun_refuse("--ddp-check: this srun makes a job of its "
				"own, and the check would be another one, on "
				"other nodes; use it in salloc or sbatch");
}

/* Where the user's shell finds it, and so where the nodes should. */
static bool find_program(char path[PATH_MAX])
{
	const char *at = getenv("PATH");
	size_t length;

	for (; at && *at; at += length + (at[length] == ':')) {
		length = strcspn(at, ":");
		if (*at == '/' &&
		    snprintf(path, PATH_MAX, "%.*s/" PROGRAM, (int)length,
			     at) < PATH_MAX && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/*
 * Whether a word is this option, or what getopt takes for it: the first so many
 * bytes of it or more. *next: its value is the next word.
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
	size_t end = (size_t)ddp_arguments_parsed(), to = 0, i;
	bool next;

	made = argv ? calloc(end + count + DDP_AGAIN_WIDE + COMMAND_MAX + 1,
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
	unsetenv(HANDED "logs");
	unsetenv(HANDED "show");
	unsetenv(INHERITED "logs");
	unsetenv(INHERITED "show");
	unsetenv("NCCL_DEBUG");
	ddp_mpi_restore();
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

	/* A terminal sends the others to the other srun, too. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
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

/*
 * All that the other srun prints; *status is how it ended, *number a signal
 * that came meanwhile, or 0.
 */
static char *run(char **argv, int *status, int *number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
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

/* srun --label puts the rank in front. */
static bool is_finding(const char *line)
{
	line += strspn(line, "0123456789 ");
	line += *line == ':';
	line += strspn(line, " ");
	return strncmp(line, PROGRAM ": ", strlen(PROGRAM ": ")) == 0;
}

static FILE *open_terminal(void)
{
	return fdopen(dup(ddp_srun.terminal >= 0 ? ddp_srun.terminal :
			  STDERR_FILENO), "w");
}

/*
 * Its findings; where there are none, all that it says is the reason. Returns
 * whether it says that it has passed: a rank may have found rank 0 slow before.
 */
static bool print(char *text)
{
	bool any = false, passed = text && strstr(text, PASSED);
	FILE *out = open_terminal();
	char *line, *next;

	for (line = text; line && out && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		if (passed ? strstr(line, PASSED) != NULL : is_finding(line))
			any = fprintf(out, "%s\n", ddp_text_quote(line)) > 0;
		else if (next > line && next[-1] == '\0')
			next[-1] = '\n';
	}
	if (!any && text && out)
		fputs(text, out);
	if (out)
		fclose(out);
	return passed;
}

/* The nodes that it names as unfit; NULL: it names none. */
static struct ddp_hostlist *find_unfit(const char *text)
{
	const char *at = text ? strstr(text, FAILED) : NULL;
	struct ddp_hostlist *hosts = NULL;
	char *list;

	at = at ? strstr(at, EXCLUDE) : NULL;
	if (!at)
		return NULL;
	at += strlen(EXCLUDE);
	list = strndup(at, strcspn(at, " \n"));
	if (list)
		hosts = ddp_hostlist_create(list, NULL);
	free(list);
	return hosts;
}

static bool is_used(const struct ddp_restart *restart, const char *node)
{
	uint32_t i;

	for (i = 0; i < restart->count; i++)
		if (strcmp(restart->names[i], node) == 0)
			return true;
	return false;
}

/* A node of the step: a spare takes its place. */
static void replace(struct ddp_restart *restart, const char *node,
		    struct ddp_text *how)
{
	const char *spare;

	if (!is_used(restart, node))
		ddp_srun_refuse("--ddp-check: did not pass, and names %.64s, "
				"which is none of the step's nodes, and so the "
				"command was not started", node);
	spare = ddp_restart_replace(restart, node);
	if (!spare)
		ddp_srun_refuse("--ddp-check: did not pass, and no spare node "
				"is left for %s, and so the command was not "
				"started", node);
	ddp_text_add(how, "%s%s in place of %s, which is not fit",
		     how->length ? ", " : "", spare, node);
}

/* The spares among them first: they can take nobody's place. */
static void leave_out(struct ddp_restart *restart,
		      const struct ddp_hostlist *hosts, struct ddp_text *unfit)
{
	size_t count = ddp_hostlist_count(hosts), i;
	bool *dropped = calloc(count, sizeof(*dropped));
	struct ddp_text how = { 0 };
	FILE *out = open_terminal();
	char *text;

	for (i = 0; dropped && i < count; i++) {
		const char *node = ddp_hostlist_get(hosts, i);

		dropped[i] = ddp_restart_drop(restart, node);
		if (dropped[i])
			ddp_text_add(&how, "%sspare %s left out, which is not "
				     "fit", how.length ? ", " : "", node);
		ddp_text_add(unfit, "%s%s", unfit->length ? "," : "", node);
	}
	for (i = 0; dropped && i < count; i++)
		if (!dropped[i])
			replace(restart, ddp_hostlist_get(hosts, i), &how);
	if (restart->spares == 0)
		ddp_text_add(&how, "; no spare is left");
	text = ddp_text_finish(&how);
	if (!text || unfit->failed || !out)
		ddp_srun_refuse("out of memory");
	fprintf(out, "slurm-ddp: --ddp-check: %s\n", text);
	fclose(out);
	free(dropped);
	free(text);
}

/* Once. Returns whether to do so again, on the nodes that are fit. */
static bool check(char *program, struct ddp_restart *restart,
		  struct ddp_text *unfit)
{
	int status = -1, number = 0;
	char *text = run(make_arguments(program, restart), &status, &number);
	struct ddp_hostlist *hosts = find_unfit(text);
	bool passed = print(text);

	free(text);
	/* The other srun may have ended just before it. */
	if (number > 0)
		ddp_srun_refuse("--ddp-check: signal %d (%s) came meanwhile, "
				"and so the command was not started", number,
				strsignal(number));
	if (!passed && restart && hosts) {
		leave_out(restart, hosts, unfit);
		ddp_hostlist_destroy(hosts);
		return true;
	}
	if (!passed)
		ddp_srun_refuse("--ddp-check: did not pass, and so the command "
				"was not started");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ddp_srun_refuse("--ddp-check: its step failed, and so the "
				"command was not started; to see why, run srun "
				"--ddp " PROGRAM " --preflight");
	return false;
}

void ddp_preflight(struct ddp_restart *restart, struct ddp_text *unfit)
{
	char program[PATH_MAX];

	refuse_what_cannot_be();
	if (!find_program(program))
		ddp_srun_refuse("--ddp-check: finds no " PROGRAM " on PATH; "
				"install it, on the nodes too, and add its "
				"folder to PATH");
	while (check(program, restart, unfit))
		;
}
