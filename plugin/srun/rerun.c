/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running srun again. The mark that tells one run from the next is the process
 * id, which exec keeps and no other srun has: where a mark leaks into another
 * srun's environment, it means nothing there.
 */
#define _GNU_SOURCE
#include "srun/rerun.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "options/plugin.h"
#include "srun/cli.h"
#include "util/text.h"

struct ddp_srun ddp_srun = { .held = -1, .terminal = -1 };

/* ---- what srun prints */

/* While srun reads its command line, so that nobody sees it twice. */
static void hold_output(void)
{
	ddp_srun.held = memfd_create("srun-stderr", MFD_CLOEXEC);
	ddp_srun.terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (ddp_srun.held >= 0 && ddp_srun.terminal >= 0)
		dup2(ddp_srun.held, STDERR_FILENO);
}

void ddp_output_drop(void)
{
	fflush(stderr);
	if (ddp_srun.terminal >= 0) {
		dup2(ddp_srun.terminal, STDERR_FILENO);
		close(ddp_srun.terminal);
	}
	ddp_srun.terminal = -1;
}

/* Runs at exit, too, in case srun ends before it has read its command line. */
__attribute__((destructor)) void ddp_output_release(void)
{
	char buffer[4096];
	ssize_t got;

	ddp_output_drop();
	if (ddp_srun.held < 0)
		return;
	lseek(ddp_srun.held, 0, SEEK_SET);
	while ((got = read(ddp_srun.held, buffer, sizeof(buffer))) > 0)
		if (write(STDERR_FILENO, buffer, (size_t)got) != got)
			break;
	close(ddp_srun.held);
	ddp_srun.held = -1;
}

FILE *ddp_output_open(void)
{
	return fdopen(dup(ddp_srun.terminal >= 0 ? ddp_srun.terminal :
			  STDERR_FILENO), "w");
}

void ddp_srun_refuse(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ddp_output_release();
	slurm_error("slurm-ddp: %s", ddp_text_quote(text));
	exit(1);
}

/* ---- the next run */

#define MARK "SLURM_DDP_RERUN"

static void read_mark(void)
{
	const char *mark = getenv(MARK);
	unsigned int pid, count, supervised, placed, checks, ordered;

	if (mark && sscanf(mark, "%u:%u:%u:%u:%u:%u:%u:%u", &pid, &count,
			   &supervised, &placed, &checks, &ordered,
			   &ddp_srun.up, &ddp_srun.up_before) == 8 &&
	    pid == (unsigned int)getpid()) {
		ddp_srun.again = true;
		ddp_srun.done = count;
		ddp_srun.supervised = (pid_t)supervised;
		ddp_srun.placed = placed;
		ddp_srun.checks = checks;
		ddp_srun.ordered = ddp_srun.measured = ordered;
	}
	unsetenv(MARK);
	if (!ddp_srun.again)
		unsetenv(DDP_TELL_HIDDEN);
	if (!ddp_srun.supervised) {
		unsetenv(DDP_TELL_SUPERVISOR);
		unsetenv(DDP_TELL_RESTARTS);
	}
}

/*
 * Returns true if this run will probably end in another. What it prints while
 * it reads its command line should then be held back. To be wrong only delays
 * some output.
 */
static bool is_another_likely(void)
{
	char **argv = ddp_arguments_read();
	bool on = getenv(DDP_INHERITED "ddp") || ddp_srun.again;
	size_t i;

	ddp_srun.expected = 1;
	for (i = 1; argv && argv[i]; i++) {
		ddp_srun.expected += strcmp(argv[i], ":") == 0;
		on |= strncmp(argv[i], "--ddp", 5) == 0;
	}
	ddp_arguments_free(argv);
	return on && ddp_srun.done < ddp_srun.expected;
}

void ddp_rerun_init(void)
{
	read_mark();
	if (is_another_likely())
		hold_output();
}

bool ddp_rerun_added(const char *name)
{
	const char *at = getenv(DDP_TELL_HIDDEN);
	size_t length = strlen(name);

	for (; at && *at; at += strspn(at, " ")) {
		if (strncmp(at, name, length) == 0 &&
		    (at[length] == ' ' || at[length] == '\0'))
			return true;
		at += strcspn(at, " ");
	}
	return false;
}

void ddp_rerun_hide(const char *name)
{
	const char *before = getenv(DDP_TELL_HIDDEN);
	char *names = NULL;

	if (ddp_rerun_added(name))
		return;
	if (asprintf(&names, "%s%s%s", before ? before : "",
		     before ? " " : "", name) < 0 ||
	    setenv(DDP_TELL_HIDDEN, names, 1) < 0)
		ddp_srun_refuse("out of memory");
	free(names);
}

void ddp_rerun_add(const char *name, const char *value)
{
	ddp_rerun_hide(name);
	if (setenv(name, value, 1) < 0)
		ddp_srun_refuse("out of memory");
}

void ddp_rerun_insert(const char *argument)
{
	const size_t room = sizeof(ddp_srun.extra) / sizeof(ddp_srun.extra[0]);
	char *copy = strdup(argument);

	if (!copy)
		ddp_srun_refuse("out of memory");
	if (ddp_srun.extra_count == room)
		ddp_srun_refuse("cannot give srun more than %zu arguments; "
				"please report this", room);
	ddp_srun.extra[ddp_srun.extra_count++] = copy;
}

/* Words of srun's own that are -N, 1 or 2; 0: others. */
static size_t count_nodes_words(const char *word)
{
	return strcmp(word, "-N") == 0 || strcmp(word, "--nodes") == 0 ? 2 :
		strncmp(word, "-N", 2) == 0 ||
		strncmp(word, "--nodes=", 8) == 0;
}

bool ddp_rerun_can_drop_nodes(void)
{
	char **argv = ddp_arguments_read();
	bool found = !ddp_cli_typed('N');
	int i;

	for (i = 1; argv && argv[i] && i < optind; i++)
		found |= count_nodes_words(argv[i]) > 0;
	ddp_arguments_free(argv);
	return found;
}

/* Leaves -N out. Returns how many words are left, *left of them srun's own. */
static size_t drop_nodes(char **argv, size_t end, size_t *left)
{
	size_t i, words, to = 1;

	for (i = 1; i < end; i += words ? words : 1) {
		words = count_nodes_words(argv[i]);
		if (!words)
			argv[to++] = argv[i];
	}
	*left = to;
	for (i = end; argv[i]; i++)
		argv[to++] = argv[i];
	argv[to] = NULL;
	return to;
}

/* The arguments with ours after the user's options; NULL on error. */
static char **read_arguments(void)
{
	size_t count = ddp_srun.extra_count, length = 0, at;
	char **argv = ddp_arguments_read(), **more;

	if (!argv || !count)
		return argv;
	while (argv[length])
		length++;
	at = (size_t)optind;
	if (at > length)
		at = length;
	if (ddp_srun.ordered && ddp_cli_typed('N'))
		length = drop_nodes(argv, at, &at);
	at -= at > 1 && strcmp(argv[at - 1], "--") == 0;
	more = calloc(length + count + 1, sizeof(*more));
	if (!more)
		return NULL;
	memcpy(more, argv, at * sizeof(*more));
	memcpy(more + at, ddp_srun.extra, count * sizeof(*more));
	memcpy(more + at + count, argv + at, (length - at) * sizeof(*more));
	return more;
}

void ddp_rerun_exec(uint32_t component, char **argv)
{
	char path[PATH_MAX], mark[128];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	sigset_t none;

	if (!argv)
		argv = read_arguments();
	snprintf(mark, sizeof(mark), "%u:%u:%u:%u:%u:%u:%u:%u",
		 (unsigned int)getpid(), component,
		 (unsigned int)ddp_srun.supervised, ddp_srun.placed,
		 ddp_srun.checks, ddp_srun.ordered, ddp_srun.up,
		 ddp_srun.up_before);
	if (!argv || length < 0 || setenv(MARK, mark, 1) < 0)
		ddp_srun_refuse("cannot read srun's arguments: %s",
				strerror(errno));
	path[length] = '\0';
	ddp_output_drop();
	/* srun has blocked the signals that it handles later. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, argv);
	ddp_srun_refuse("cannot run %s again: %s", path, strerror(errno));
}
