/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running srun again. The mark that tells one run from the next is the process
 * id, which exec keeps and no other srun has: where a mark leaks into another
 * srun's environment, it means nothing there.
 */
#define _GNU_SOURCE
#include "srun/rerun.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/plugin.h"
#include "srun/arguments.h"
#include "srun/context.h"
#include "srun/output.h"

#define MARK "SLURM_DDP_RERUN"

uint32_t ddp_rerun_done(void)
{
	return ddp_srun.done;
}

bool ddp_rerun_on(void)
{
	return ddp_srun.again;
}

static void read_mark(void)
{
	const char *mark = getenv(MARK);
	unsigned int pid, count, supervised, placed, checks;

	if (mark && sscanf(mark, "%u:%u:%u:%u:%u", &pid, &count, &supervised,
			   &placed, &checks) == 5 &&
	    pid == (unsigned int)getpid()) {
		ddp_srun.again = true;
		ddp_srun.done = count;
		ddp_srun.supervised = (pid_t)supervised;
		ddp_srun.placed = placed;
		ddp_srun.checks = checks;
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
		ddp_output_hold();
}

void ddp_rerun_component_read(uint32_t component)
{
	if (component + 1 >= ddp_srun.expected)
		ddp_output_release();
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

/* The arguments with ours after the user's options; NULL on error. */
static char **read_arguments(void)
{
	size_t count = ddp_srun.extra_count, length = 0, at;
	char **argv = ddp_arguments_read(), **more;

	if (!argv || !count)
		return argv;
	while (argv[length])
		length++;
	at = (size_t)ddp_arguments_parsed();
	if (at > length)
		at = length;
	at -= at > 1 && strcmp(argv[at - 1], "--") == 0;
	more = calloc(length + count + 1, sizeof(*more));
	if (!more)
		return NULL;
	memcpy(more, argv, at * sizeof(*more));
	memcpy(more + at, ddp_srun.extra, count * sizeof(*more));
	memcpy(more + at + count, argv + at, (length - at) * sizeof(*more));
	return more;
}

void ddp_rerun_exec(uint32_t component)
{
	ddp_rerun_exec_arguments(component, read_arguments());
}

void ddp_rerun_exec_arguments(uint32_t component, char **argv)
{
	char path[PATH_MAX], mark[64];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	sigset_t none;

	snprintf(mark, sizeof(mark), "%u:%u:%u:%u:%u", (unsigned int)getpid(),
		 component, (unsigned int)ddp_srun.supervised, ddp_srun.placed,
		 ddp_srun.checks);
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
