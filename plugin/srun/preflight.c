/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-check: the same srun, with the same options, runs ddp-bench --preflight
 * first. What that prints tells which nodes are fit for the command.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/options.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "supervisor/threads.h"
#include "util/file.h"

/* ---- the step */

enum { SIGNALS_MS = 100, TEXT_MAX = 1 << 20, COMMAND_MAX = 4 };

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
	ddp_rerun_exec(0, argv);
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

/*
 * Runs the step, on the spares of restart (NULL: there are none), too. Returns
 * all that it prints; NULL: out of memory. *status is how it ended, *number the
 * last signal that came meanwhile, or 0.
 */
static char *run_step(char *program, const struct ddp_restart *restart,
		      int *status, int *number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	char **argv = make_arguments(program, restart);
	struct ddp_text text = { 0 };
	pid_t parent = getpid(), pid;
	int out[2];

	sigaction(SIGCHLD, &usual, NULL);
	if (pipe2(out, O_CLOEXEC) < 0 || (pid = fork()) < 0)
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

/* ---- what it has found */

#define PROGRAM "ddp-bench"
#define PASSED PROGRAM ": preflight passed"
#define FAILED PROGRAM ": preflight failed: "
#define EXCLUDE "--exclude="
/*
 * The supervisor says "slurm-ddp: node n2 was lost first, after ..." or
 * "slurm-ddp: nodes n3,n4 were lost first, ..."
 */
static const struct {
	const char *node, *lost;
} sentences[] = {
	{ "slurm-ddp: node ", " was lost first," },
	{ "slurm-ddp: nodes ", " were lost first," },
};

/* The nodes that were lost; *length is that of the list. NULL: none are named. */
static const char *find_lost(const char *line, int *length)
{
	const char *begin, *end;
	size_t i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		if (strncmp(line, sentences[i].node,
			    strlen(sentences[i].node)) != 0)
			continue;
		begin = line + strlen(sentences[i].node);
		end = begin + strcspn(begin, " \n");
		*length = (int)(end - begin);
		if (strncmp(end, sentences[i].lost,
			    strlen(sentences[i].lost)) == 0)
			return begin;
	}
	return NULL;
}

/* srun --label puts the rank in front. */
static bool is_finding(const char *line)
{
	int length;

	if (find_lost(line, &length))
		return true;
	line += strspn(line, "0123456789 ");
	line += *line == ':';
	line += strspn(line, " ");
	return strncmp(line, PROGRAM ": ", strlen(PROGRAM ": ")) == 0;
}

/*
 * Prints the findings, and changes the text; where there are none, all of it is
 * the reason. If it passed, prints only that: a rank may have found rank 0 slow
 * before.
 */
static void print_findings(char *text, bool passed)
{
	bool any = false;
	FILE *out = ddp_output_open();
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
}

/*
 * The list of nodes that it names as unfit; NULL: it names none. Who is lost
 * ddp-bench may have named, too.
 */
static char *list_unfit(const char *text)
{
	const char *at = text ? strstr(text, FAILED) : NULL, *line = text;
	const char *lost = NULL;
	int length;

	at = at ? strstr(at, EXCLUDE) : NULL;
	if (at) {
		at += strlen(EXCLUDE);
		return strndup(at, strcspn(at, " \n"));
	}
	while (line && !lost) {
		lost = find_lost(line, &length);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return lost ? strndup(lost, (size_t)length) : NULL;
}

static struct ddp_hostlist *find_unfit(const char *text)
{
	char *list = list_unfit(text);
	struct ddp_hostlist *hosts = list ? ddp_hostlist_create(list, NULL) :
					    NULL;

	free(list);
	return hosts;
}

/*
 * Returns true if a node may not answer. The check's step there then holds what
 * it has on all nodes until Slurm gives the node up.
 */
static bool may_hold(const char *text)
{
	static const char *const words[] = {
		" lost first,", " has not come to the master",
		" answers no more",
	};
	size_t i;

	for (i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* ---- what follows */

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
	FILE *out = ddp_output_open();
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

/*
 * Checks the nodes once. Returns true if those that are fit must be checked
 * again.
 */
static bool check(char *program, struct ddp_restart *restart,
		  struct ddp_text *unfit)
{
	int status = -1, number = 0;
	char *text = run_step(program, restart, &status, &number);
	struct ddp_hostlist *hosts = find_unfit(text);
	bool says = text && strstr(text, PASSED);
	bool holds = may_hold(text);
	bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* A node may be lost after it has said so. */
	bool passed = says && ended;

	print_findings(text, passed);
	free(text);
	/* The other srun may have ended just before it. */
	if (number > 0)
		ddp_srun_refuse("--ddp-check: signal %d (%s) came meanwhile, "
				"and so the command was not started", number,
				strsignal(number));
	if (!passed && restart && hosts) {
		restart->overlap |= holds;
		leave_out(restart, hosts, unfit);
		ddp_hostlist_destroy(hosts);
		return true;
	}
	if (!says)
		ddp_srun_refuse("--ddp-check: did not pass, and so the command "
				"was not started");
	if (!ended)
		ddp_srun_refuse("--ddp-check: its step failed, and so the "
				"command was not started; to see why, run srun "
				"--ddp ddp-bench --preflight");
	return false;
}

#define NO_BENCH "finds no ddp-bench on PATH; install it, on the nodes too, and " \
	"add its folder to PATH"

static void say_left_out(void)
{
	FILE *out = ddp_output_open();

	if (!out)
		return;
	fprintf(out, "slurm-ddp: the site's ddp-check= is left out: " NO_BENCH
		"\n");
	fclose(out);
}

void ddp_preflight(struct ddp_restart *restart, struct ddp_text *unfit)
{
	const char *folders = getenv("PATH");
	char program[PATH_MAX];

	refuse_what_cannot_be();
	/* The user's shell finds it there, and so the nodes should. */
	do
		if (!ddp_path_next(&folders, "ddp-bench", program)) {
			if (ddp_options_typed("--ddp-check"))
				ddp_srun_refuse("--ddp-check: " NO_BENCH);
			say_left_out();
			return;
		}
	while (*program != '/' || access(program, X_OK) != 0);
	while (check(program, restart, unfit))
		;
}
