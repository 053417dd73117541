/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes the signals that ask the run to end, in a thread of its own. A handler
 * could come while a library multiplies: oneDNN's sgemm points the stack
 * pointer into its own memory, and the frame of a handler would overwrite what
 * is there.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/signals.h"
#include "util/clock.h"
#include "util/error.h"

/* A signal that comes again within this time counts as the first: signals.h. */
enum { REPEATS_NS = 2000000000 };

static atomic_bool come;

static void *wait_for_signals(void *context)
{
	const sigset_t *set = context;
	int64_t first = 0, now;
	int number;

	while (sigwait(set, &number) == 0) {
		now = ddp_clock_ns();
		if (!atomic_load(&come))
			first = now;
		else if (now - first >= REPEATS_NS)
			_exit(128 + number);
		atomic_store(&come, true);
	}
	return NULL;
}

int signals_catch(struct ddp_error *error)
{
	static bool caught;
	static sigset_t set;
	pthread_t thread;
	int cause;

	if (caught)
		return 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	cause = pthread_create(&thread, NULL, wait_for_signals, &set);
	if (cause)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no thread to "
				     "wait for signals: %s; allow more "
				     "processes (ulimit -u)", strerror(cause));
	pthread_detach(thread);
	caught = true;
	return 0;
}

/* The thread that takes a signal may run much later, on a busy machine. */
bool signals_have_come(void)
{
	sigset_t pending;

	return atomic_load(&come) ||
	       (sigpending(&pending) == 0 &&
		(sigismember(&pending, SIGUSR1) == 1 ||
		 sigismember(&pending, SIGTERM) == 1));
}
