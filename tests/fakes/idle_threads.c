/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts threads in an srun before it loads its plugins, as Slurm 26.05 and tracing
 * libraries do. It is an LD_PRELOAD library, or part of a fake srun. IDLE_THREADS
 * says which threads:
 *
 *	2	two threads, which only sleep
 *	deaf	one more, which blocks all signals but those that end an srun
 *	waits	one more, which blocks all and takes those by sigwait
 *	slow	as 2, but a signal's handler takes them 0.3 s, as on a busy machine
 *
 *	late	one more, which blocks all until 0.1 s after it has got SIGURG, as
 *		one that pthread_create has made does on a busy machine. If it then
 *		does not block those that end an srun, the process ends with 97.
 *
 * The plugin must not change what belongs to the whole process: the umask, the
 * buffer of getgrnam, and in the supervisor, when srun itself is done with it, the
 * environment. If it does, the process ends with code 97.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t started;	/* the process in which there are threads */
static int (*real_sigismember)(const sigset_t *set, int number);

static const int ends[] = {
	SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2,
};

static void fill_ends(sigset_t *set)
{
	size_t i;

	sigemptyset(set);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(set, ends[i]);
	sigaddset(set, SIGRTMIN);
}

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *wait_for_ends(void *unused)
{
	sigset_t set;
	int number;

	fill_ends(&set);
	for (;;)
		sigwait(&set, &number);
	return unused;
}

static void *come_late(void *unused)
{
	sigset_t pending, none, mask;

	do {
		usleep(1000);
		sigpending(&pending);
	} while (!real_sigismember(&pending, SIGURG));
	usleep(100000);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (!real_sigismember(&mask, SIGTERM)) {
		fprintf(stderr, "idle_threads: SIGTERM is not blocked\n");
		_exit(97);
	}
	return sleep_on(unused);
}

/* It has this mask from its first moment on. */
static void start(void *(*run)(void *), const sigset_t *mask)
{
	pthread_t thread;
	sigset_t before;

	pthread_sigmask(SIG_SETMASK, mask, &before);
	if (pthread_create(&thread, NULL, run, NULL) != 0)
		abort();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_detach(thread);
}

/* Programs that a task or a test runs inherit the variable, but start none. */
static const char *asked(void)
{
	const char *threads = getenv("IDLE_THREADS");

	return threads && strcmp(program_invocation_short_name, "srun") == 0 ?
	       threads : NULL;
}

__attribute__((constructor)) static void start_all(void)
{
	const char *threads = asked();
	sigset_t as_is, all, others;
	size_t i;

	*(void **)&real_sigismember = dlsym(RTLD_NEXT, "sigismember");
	if (!threads)
		return;
	started = getpid();
	pthread_sigmask(SIG_SETMASK, NULL, &as_is);
	sigfillset(&all);
	others = all;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigdelset(&others, ends[i]);
	sigdelset(&others, SIGRTMIN);
	start(sleep_on, &as_is);
	start(sleep_on, &as_is);
	if (strcmp(threads, "deaf") == 0)
		start(sleep_on, &others);
	if (strcmp(threads, "waits") == 0)
		start(wait_for_ends, &all);
	if (strcmp(threads, "late") == 0)
		start(come_late, &all);
}

static bool is_plugin(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "spank_ddp");
}

static bool is_supervisor(void)
{
	char thread[16] = "";

	prctl(PR_GET_NAME, thread);
	return strcmp(thread, "ddp-supervisor") == 0;
}

/* A fork of it has no other threads. */
static void refuse_if(bool wrong, const char *what, const char *name)
{
	if (getpid() != started || !wrong)
		return;
	fprintf(stderr, "idle_threads: %s(%s)\n", what, name);
	_exit(97);
}

mode_t umask(mode_t mask)
{
	refuse_if(is_plugin(__builtin_return_address(0)) || is_supervisor(),
		  "umask", "");
	return (mode_t)syscall(SYS_umask, mask);
}

int setenv(const char *name, const char *value, int overwrite)
{
	int (*real)(const char *name, const char *value, int overwrite);

	refuse_if(is_supervisor(), "setenv", name);
	*(void **)&real = dlsym(RTLD_NEXT, "setenv");
	return real(name, value, overwrite);
}

int sigismember(const sigset_t *set, int number)
{
	const char *threads = asked();

	if (getpid() == started && (pid_t)syscall(SYS_gettid) != started &&
	    number == 1 && threads && strcmp(threads, "slow") == 0)
		usleep(300000);
	return real_sigismember(set, number);
}

struct group *getgrnam(const char *name)
{
	struct group *(*real)(const char *name);

	refuse_if(is_plugin(__builtin_return_address(0)), "getgrnam", name);
	*(void **)&real = dlsym(RTLD_NEXT, "getgrnam");
	return real(name);
}
