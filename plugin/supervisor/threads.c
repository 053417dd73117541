/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread's mask can be changed by that thread alone. So each gets SIGURG, and
 * its handler adds the signals to the mask that the thread has when the handler
 * returns. They are blocked in the handler, too, as that can take long on a busy
 * machine. A thread that pthread_create has just made blocks all signals, for long on
 * a busy machine: it gets SIGURG once it does not, and so the handler stays.
 */
#define _GNU_SOURCE
#include "supervisor/threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file.h"

enum {
	ANSWER_MS = 5000,	/* a busy machine runs each thread in it */
	HELD_MS = 100,		/* pthread_create has ended by then */
	PAUSE_MS = 1,		/* an idle thread answers in it */
	CLEAN_PASSES = 2	/* one that has just started was asked in the
				 * first, and answers before the second */
};

/* A pass finds one for each thread, and tells the last in this list. */
enum state {
	ALONE,		/* there is no other thread */
	BLOCKED,	/* it blocks the signals, or has ended */
	HELD,		/* it blocks them, and SIGURG: for good, or it is just made,
			 * or makes another one, which then is to be asked */
	OPEN,		/* it does not, and will answer */
	DEAF		/* it does not, but blocks SIGURG */
};

static sigset_t wanted;

/*
 * The kernel's mask is shorter than a sigset_t. sigorset or sigfillset would
 * write behind it, but not sigaddset.
 */
static void add_wanted(int number, siginfo_t *info, void *context)
{
	ucontext_t *after = context;

	(void)info;
	for (number = 1; number <= SIGRTMIN; number++)
		if (sigismember(&wanted, number) == 1)
			sigaddset(&after->uc_sigmask, number);
}

int ddp_threads_read(const char *path, const char *name, uint64_t *mask)
{
	char *text = ddp_file_read(path);
	const char *at = text ? strstr(text, name) : NULL;

	if (at)
		*mask = strtoull(at + strlen(name), NULL, 16);
	free(text);
	return at ? 0 : -1;
}

static uint64_t make_mask(const sigset_t *set)
{
	uint64_t mask = 0;
	int number;

	for (number = 1; number <= SIGRTMIN; number++)
		if (sigismember(set, number) == 1)
			mask |= UINT64_C(1) << (number - 1);
	return mask;
}

static enum state read_state(pid_t tid)
{
	const uint64_t mask = make_mask(&wanted);
	uint64_t blocked;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
	if (ddp_threads_read(path, "\nSigBlk:", &blocked) < 0)
		return access(path, F_OK) == 0 ? OPEN : BLOCKED;
	if (blocked & UINT64_C(1) << (SIGURG - 1))
		return (blocked & mask) == mask ? HELD : DEAF;
	return (blocked & mask) == mask ? BLOCKED : OPEN;
}

/*
 * Asks all, and returns the last state of any; [worst] is whose that is. The /proc of
 * another PID namespace has other numbers: a single thread is then this one.
 */
static enum state ask_all(DIR *tasks, pid_t *worst)
{
	const pid_t self = (pid_t)syscall(SYS_gettid);
	enum state state, last = ALONE;
	struct dirent *entry;
	bool known = false;
	int others = 0;
	pid_t tid;

	rewinddir(tasks);
	while ((entry = readdir(tasks))) {
		tid = (pid_t)atoi(entry->d_name);
		known |= tid == self;
		if (tid <= 0 || tid == self)
			continue;
		others++;
		syscall(SYS_tgkill, getpid(), tid, SIGURG);
		state = read_state(tid);
		if (state > last) {
			last = state;
			*worst = tid;
		}
	}
	return !known && others == 1 ? ALONE : last;
}

/* Returns 0 when all have blocked them, or a thread that has not. */
static pid_t block_in_all(DIR *tasks)
{
	int64_t start_ms = ddp_clock_ms(), now_ms = start_ms;
	enum state state;
	pid_t worst = 0;
	int clean = 0;

	while (clean < CLEAN_PASSES) {
		state = ask_all(tasks, &worst);
		now_ms = ddp_clock_ms();
		if (state == ALONE ||
		    (state == HELD && now_ms - start_ms >= HELD_MS))
			return 0;
		if (state == DEAF ||
		    (state == OPEN && now_ms - start_ms >= ANSWER_MS))
			return worst;
		clean = state == BLOCKED ? clean + 1 : 0;
		usleep(1000 * PAUSE_MS);
	}
	return 0;
}

static void read_name(pid_t tid, char name[17])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)tid);
	ddp_file_read_line(path, name, 17);
	if (*name == '\0')
		strcpy(name, "?");
}

int ddp_threads_block(const sigset_t *set, struct ddp_error *error)
{
	struct sigaction ours = {
		.sa_sigaction = add_wanted, .sa_mask = *set,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	}, before;
	DIR *tasks = opendir("/proc/self/task");
	char name[17];
	pid_t tid;

	if (!tasks)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "/proc/self/task cannot be read: %s",
				     strerror(errno));
	wanted = *set;
	sigaction(SIGURG, &ours, &before);
	tid = block_in_all(tasks);
	closedir(tasks);
	if (tid == 0)
		return 0;
	sigaction(SIGURG, &before, NULL);
	read_name(tid, name);
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "a thread of srun (\"%s\") does not leave signals "
			     "to it; take the library that starts that thread "
			     "out of LD_PRELOAD", name);
}
