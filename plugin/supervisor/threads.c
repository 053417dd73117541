/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread's mask can be changed by that thread alone. So each gets SIGURG, and
 * its handler adds the signals to the mask that the thread has when the handler
 * returns. They are blocked in the handler, too, as that can take long on a busy
 * machine. SIGURG is ignored by default: one that arrives late does no harm.
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

#include "proc/kernel.h"
#include "util/clock.h"
#include "util/file.h"

enum {
	ANSWER_MS = 5000,	/* a busy machine runs each thread in it */
	BLOCKED_MS = 100,	/* who sleeps and blocks SIGURG for longer does
				 * it for good */
	PAUSE_MS = 1,		/* an idle thread answers in it */
	CLEAN_PASSES = 2	/* one that has just started was asked in the
				 * first, and answers before the second */
};

/* A pass finds one for each thread, and tells the last in this list. */
enum state {
	ALONE,		/* there is no other thread */
	BLOCKED,	/* it blocks the signals, or has ended */
	HELD,		/* it blocks them, and SIGURG, which waits */
	STARTING,	/* the same, but it does not sleep: pthread_create, which
			 * blocks all for a moment, has perhaps just made it */
	DEAF,		/* it blocks SIGURG alone */
	OPEN		/* it blocks neither, and will answer */
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
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = -1;

	if (!file)
		return -1;
	/* A line before it can be long: it has all the user's groups. */
	while (rc < 0 && getline(&line, &room, file) > 0)
		if (strncmp(line, name, strlen(name)) == 0) {
			*mask = strtoull(line + strlen(name), NULL, 16);
			rc = 0;
		}
	free(line);
	fclose(file);
	return rc;
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

static bool sleeps(const char *tid)
{
	struct ddp_kernel_process thread;
	char path[64], *text;
	bool asleep;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	text = ddp_file_read(path);
	asleep = text && ddp_kernel_read_process(text, &thread) == 0 &&
		 thread.state != 'R';
	free(text);
	return asleep;
}

static enum state read_state(const char *tid)
{
	const uint64_t mask = make_mask(&wanted);
	const uint64_t asks = UINT64_C(1) << (SIGURG - 1);
	uint64_t blocked, pending;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", tid);
	if (ddp_threads_read(path, "SigBlk:", &blocked) < 0 ||
	    ddp_threads_read(path, "SigPnd:", &pending) < 0)
		return access(path, F_OK) == 0 ? OPEN : BLOCKED;
	if ((blocked & mask) != mask)
		return blocked & asks ? DEAF : OPEN;
	if (!(pending & asks))
		return BLOCKED;
	return sleeps(tid) ? HELD : STARTING;
}

/*
 * Asks all, and returns the last state of any; [worst] is whose that is. The /proc of
 * another PID namespace has other numbers: a single thread is then this one.
 */
static enum state ask_all(DIR *tasks, pid_t *worst)
{
	enum state state, last = ALONE;
	bool known = false;
	int others = 0;
	const pid_t self = (pid_t)syscall(SYS_gettid);
	struct dirent *entry;
	pid_t tid;

	rewinddir(tasks);
	while ((entry = readdir(tasks))) {
		tid = (pid_t)atoi(entry->d_name);
		known |= tid == self;
		if (tid <= 0 || tid == self)
			continue;
		others++;
		state = read_state(entry->d_name);
		if (state > last) {
			last = state;
			*worst = tid;
		}
		syscall(SYS_tgkill, getpid(), tid, SIGURG);
	}
	return !known && others == 1 ? ALONE : last;
}

/* Returns 0 when all have blocked them, or a thread that has not. */
static pid_t block_in_all(DIR *tasks)
{
	int64_t now_ms = ddp_clock_ms(), end_ms = now_ms + ANSWER_MS;
	int64_t open_ms = now_ms;
	enum state state;
	pid_t worst = 0;
	int clean = 0;

	do {
		state = ask_all(tasks, &worst);
		now_ms = ddp_clock_ms();
		if (state == OPEN || state == STARTING)
			open_ms = now_ms;
		clean = state == BLOCKED ? clean + 1 : 0;
		if (state == ALONE || clean == CLEAN_PASSES)
			return 0;
		if (clean == 0 && now_ms - open_ms >= BLOCKED_MS)
			return state == HELD ? 0 : worst;
		usleep(1000 * PAUSE_MS);
	} while (now_ms < end_ms);
	return state == STARTING ? 0 : worst;
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
	sigaction(SIGURG, &before, NULL);
	closedir(tasks);
	if (tid == 0)
		return 0;
	read_name(tid, name);
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "a thread of srun (\"%s\") does not leave signals "
			     "to it; take the library that starts that thread "
			     "out of LD_PRELOAD", name);
}
