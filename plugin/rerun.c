/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun reads its input variables before a plugin can know what the command
 * line left open. So the plugin sets variables and runs srun once more: what
 * the user typed still wins over them. A heterogeneous step needs one more
 * run for each component, as each has its turn to be read.
 *
 * The mark that tells a run from the next is the process id, which exec
 * keeps and no other srun has: a mark that leaks is a mark for nobody.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin.h"

#define MARK "SLURM_DDP_RERUN"
#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp"

static uint32_t done;		/* components that earlier runs filled in */
static uint32_t expected;	/* components, as far as arguments show */
static bool again;
static int held = -1, real_stderr = -1;

uint32_t ddp_rerun_done(void)
{
	return done;
}

bool ddp_rerun_on(void)
{
	return again;
}

static void mark_read(void)
{
	const char *mark = getenv(MARK);
	unsigned int pid, count;

	if (mark && sscanf(mark, "%u:%u", &pid, &count) == 2 &&
	    pid == (unsigned int)getpid()) {
		again = true;
		done = count;
	}
	unsetenv(MARK);
	if (!again)
		unsetenv(DDP_RERUN_ADDED);
}

/* All of a file of /proc, followed by two NUL bytes; the caller's. */
static char *proc_read(const char *path, size_t *length)
{
	size_t size = 65536, have = 0;
	char *text = malloc(size), *more;
	ssize_t got = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && text && got > 0) {
		if (size - have < 4096) {
			more = realloc(text, size *= 2);
			if (!more)
				break;
			text = more;
		}
		got = read(fd, text + have, size - have - 2);
		have += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (fd < 0 || !text || got != 0) {
		free(text);
		return NULL;
	}
	text[have] = text[have + 1] = '\0';
	*length = have;
	return text;
}

char **ddp_rerun_argv(void)
{
	size_t length, count = 0, i;
	char *text = proc_read("/proc/self/cmdline", &length), **argv, *p;

	if (!text)
		return NULL;
	for (i = 0; i < length; i++)
		count += text[i] == '\0';
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv) {
		free(text);
		return NULL;
	}
	for (i = 0, p = text; p < text + length; p += strlen(p) + 1)
		argv[i++] = p;
	return argv;
}

void ddp_rerun_argv_free(char **argv)
{
	if (argv)
		free(argv[0]);
	free(argv);
}

/*
 * Whether this run will probably end in another, so that what it prints
 * while it reads its command line should not be seen twice. Being wrong only
 * delays some output.
 */
static bool another_likely(void)
{
	char **argv = ddp_rerun_argv();
	bool on = getenv(INHERITED) || again;
	size_t i;

	expected = 1;
	for (i = 1; argv && argv[i]; i++) {
		expected += strcmp(argv[i], ":") == 0;
		on |= strncmp(argv[i], "--ddp", 5) == 0;
	}
	ddp_rerun_argv_free(argv);
	return on && done < expected;
}

void ddp_rerun_init(void)
{
	mark_read();
	if (!another_likely())
		return;
	held = memfd_create("srun-stderr", MFD_CLOEXEC);
	real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (held >= 0 && real_stderr >= 0)
		dup2(held, STDERR_FILENO);
}

static void hold_end(void)
{
	fflush(stderr);
	if (real_stderr >= 0) {
		dup2(real_stderr, STDERR_FILENO);
		close(real_stderr);
	}
	real_stderr = -1;
}

/* Also at exit, should srun end before it has read its command line. */
__attribute__((destructor)) void ddp_rerun_release(void)
{
	char buffer[4096];
	ssize_t got;

	hold_end();
	if (held < 0)
		return;
	lseek(held, 0, SEEK_SET);
	while ((got = read(held, buffer, sizeof(buffer))) > 0)
		if (write(STDERR_FILENO, buffer, (size_t)got) != got)
			break;
	close(held);
	held = -1;
}

void ddp_rerun_component_read(uint32_t component)
{
	if (component + 1 >= expected)
		ddp_rerun_release();
}

bool ddp_rerun_added(const char *name)
{
	const char *at = getenv(DDP_RERUN_ADDED);
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
	const char *before = getenv(DDP_RERUN_ADDED);
	char *names = NULL;

	if (ddp_rerun_added(name))
		return;
	if (asprintf(&names, "%s%s%s", before ? before : "",
		     before ? " " : "", name) < 0 ||
	    setenv(DDP_RERUN_ADDED, names, 1) < 0)
		ddp_srun_refuse("out of memory");
	free(names);
}

void ddp_rerun_add(const char *name, const char *value)
{
	ddp_rerun_hide(name);
	if (setenv(name, value, 1) < 0)
		ddp_srun_refuse("out of memory");
}

void ddp_rerun_exec(uint32_t components)
{
	char **argv = ddp_rerun_argv(), path[PATH_MAX], mark[32];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	sigset_t none;

	snprintf(mark, sizeof(mark), "%u:%u", (unsigned int)getpid(),
		 components);
	if (!argv || length < 0 || setenv(MARK, mark, 1) < 0)
		ddp_srun_refuse("cannot read srun's arguments: %s",
				strerror(errno));
	path[length] = '\0';
	hold_end();
	/* srun has blocked the signals that it handles later. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(path, argv);
	ddp_srun_refuse("cannot run %s again: %s", path, strerror(errno));
}
