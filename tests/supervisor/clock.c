/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock of a fake step, in place of lib/util/clock.c, poll and usleep. With
 * it the supervisor and the fakes wait for minutes within seconds, and never too
 * short on a busy machine. It stands still while any process of the step runs. Once
 * all of them sleep it jumps to the end of the first wait.
 *
 * A process of its own, the keeper, moves the clock. The file "clock" in the
 * working directory has its start and its time now, 8 bytes each.
 */
#define _GNU_SOURCE
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	LOOK_NS = 200000,	/* how often the keeper looks at all processes */
	LONG_NS = 100000000,	/* a longer wait takes a hundredth of its time, */
	NAP_NS = 10000000,	/* and at least this, as the kernel may have
				 * more to deliver */
	SLOTS_MAX = 256,	/* processes that have ever waited */
	WAKE = 63		/* a signal that nobody else uses */
};

/* One for each process that waits. */
struct slot {
	_Atomic pid_t pid;
	_Atomic int64_t until_ns;	/* 0: it does not wait for a time */
};

/* The content of the file, which is small as a test limits the size of files. */
static struct times {
	int64_t start_ns;
	_Atomic int64_t now_ns;
} *times;

/* The keeper shares this, too, with the processes of the step. */
static struct shared {
	_Atomic bool over;		/* the supervisor has ended */
	_Atomic uint32_t waits;		/* how many there were; a futex */
	struct slot slots[SLOTS_MAX];
} *shared;

static volatile sig_atomic_t woken;

int64_t ddp_clock_ns(void)
{
	return times->now_ns;
}

int64_t ddp_clock_ms(void)
{
	return ddp_clock_ns() / 1000000;
}

/* Reads a small file. False: it is not there, as a process is gone. */
static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	got = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got >= 0;
}

static bool read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return read_file(path, text, size);
}

/*
 * Returns whether the kernel has packets that it has not delivered yet, as its own
 * thread waits for a processor. The file has a line for each processor, of which
 * the twelfth number counts them.
 */
static bool is_delivering(void)
{
	char text[8192], *line, *save;
	unsigned int count;

	read_file("/proc/net/softnet_stat", text, sizeof(text));
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%*x %*x %*x %*x %*x %*x %*x %*x %*x %*x %*x "
			   "%x", &count) == 1 && count > 0)
			return true;
	return false;
}

/*
 * Returns whether the process sleeps, or is gone. Adds to sum how often it ran,
 * as a process that sleeps again has run since.
 */
static bool is_asleep(pid_t pid, uint64_t *sum)
{
	char text[512], *at;
	unsigned long long turns = 0;

	if (!read_proc(pid, "schedstat", text, sizeof(text)))
		return true;
	sscanf(text, "%*u %*u %llu", &turns);
	*sum += turns;
	if (!read_proc(pid, "stat", text, sizeof(text)))
		return true;
	at = strrchr(text, ')');
	return !at || !strchr("RD", at[2]);
}

/* The same of all that the process has started, but for the keeper. */
static bool are_asleep(pid_t pid, uint64_t *sum)
{
	char name[32], text[2048], *at = text, *end;
	pid_t child;

	if (pid == getpid())
		return true;
	if (!is_asleep(pid, sum))
		return false;
	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	read_proc(pid, name, text, sizeof(text));
	while ((child = (pid_t)strtol(at, &end, 10)) > 0) {
		if (!are_asleep(child, sum))
			return false;
		at = end;
	}
	return true;
}

/* An agent whose srun has ended is no descendant, but has a slot. */
static bool is_step_asleep(pid_t supervisor, uint64_t *sum)
{
	int i;

	*sum = 0;
	if (!are_asleep(supervisor, sum) || is_delivering())
		return false;
	for (i = 0; i < SLOTS_MAX && shared->slots[i].pid; i++)
		if (!is_asleep(shared->slots[i].pid, sum))
			return false;
	return true;
}

/* The end of the first wait; 0: nobody waits for a time. */
static int64_t find_next(void)
{
	int64_t next_ns = 0, until_ns;
	int i;

	for (i = 0; i < SLOTS_MAX && shared->slots[i].pid; i++) {
		until_ns = shared->slots[i].until_ns;
		if (until_ns && kill(shared->slots[i].pid, 0) < 0)
			shared->slots[i].until_ns = until_ns = 0;
		if (until_ns && (!next_ns || until_ns < next_ns))
			next_ns = until_ns;
	}
	return next_ns;
}

static void wake(void)
{
	int i;

	for (i = 0; i < SLOTS_MAX && shared->slots[i].pid; i++)
		if (shared->slots[i].until_ns &&
		    (shared->over ||
		     shared->slots[i].until_ns <= times->now_ns))
			kill(shared->slots[i].pid, WAKE);
}

/* Waits until another wait begins, as nobody may run then; LOOK_NS at most. */
static void await_wait(uint32_t waits)
{
	const struct timespec time = { .tv_nsec = LOOK_NS };

	syscall(SYS_futex, &shared->waits, FUTEX_WAIT, waits, &time, NULL, 0);
}

static void nap(int64_t wait_ns)
{
	const int64_t ns = wait_ns / 100 > NAP_NS ? wait_ns / 100 : NAP_NS;
	const struct timespec time = {
		.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000,
	};

	if (wait_ns > LONG_NS)
		nanosleep(&time, NULL);
}

static void keep(pid_t supervisor)
{
	uint64_t before, after;
	int64_t next_ns;
	uint32_t waits;

	while (getppid() == supervisor) {
		waits = shared->waits;
		next_ns = find_next();
		if (!next_ns || !is_step_asleep(supervisor, &before)) {
			await_wait(waits);
			continue;
		}
		nap(next_ns - times->now_ns);
		if (!is_step_asleep(supervisor, &after) || before != after ||
		    next_ns != find_next())
			continue;
		if (next_ns > times->now_ns)
			times->now_ns = next_ns;
		waits = shared->waits;
		wake();
		await_wait(waits);
	}
	shared->over = true;
	wake();
	_exit(0);
}

static void take_wake(int signal)
{
	(void)signal;
	woken = 1;
}

static void *share(size_t size, int flags, int fd)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (memory == MAP_FAILED)
		_exit(96);
	return memory;
}

/* The keeper gets a group of its own, as tests send signals to that of srun. */
__attribute__((constructor)) static void begin(void)
{
	const struct sigaction action = {
		.sa_handler = take_wake, .sa_flags = SA_RESTART,
	};
	pid_t supervisor = getpid();
	struct timespec now;
	int fd;

	unlink("clock");
	fd = open("clock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*times)) < 0)
		_exit(96);
	times = share(sizeof(*times), MAP_SHARED, fd);
	shared = share(sizeof(*shared), MAP_SHARED | MAP_ANONYMOUS, -1);
	close(fd);
	clock_gettime(CLOCK_MONOTONIC, &now);
	times->start_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	times->now_ns = times->start_ns;
	sigaction(WAKE, &action, NULL);
	if (fork() == 0) {
		setpgid(0, 0);
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		keep(supervisor);
	}
}

static struct slot *find_slot(void)
{
	pid_t pid = getpid(), none;
	int i;

	for (i = 0; i < SLOTS_MAX; i++) {
		none = 0;
		if (shared->slots[i].pid == pid ||
		    atomic_compare_exchange_strong(&shared->slots[i].pid, &none,
						   pid))
			return &shared->slots[i];
	}
	_exit(96);
}

/* Does what poll(2) does until a time of this clock. ppoll alone lets WAKE in. */
static int wait_until(struct pollfd *fds, nfds_t count, int64_t until_ns)
{
	struct slot *slot = find_slot();
	sigset_t mask, before;
	int rc, error;

	sigemptyset(&mask);
	sigaddset(&mask, WAKE);
	sigprocmask(SIG_BLOCK, &mask, &before);
	mask = before;
	sigdelset(&mask, WAKE);
	slot->until_ns = until_ns;
	shared->waits++;
	syscall(SYS_futex, &shared->waits, FUTEX_WAKE, 1, NULL, NULL, 0);
	do {
		woken = 0;
		rc = ppoll(fds, count, NULL, &mask);
		error = errno;
		if (shared->over)
			_exit(96);
	} while (rc < 0 && woken && times->now_ns < until_ns);
	if (rc < 0 && times->now_ns >= until_ns)
		rc = 0;
	slot->until_ns = 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return rc;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static const struct timespec now;

	if (timeout_ms <= 0)
		return ppoll(fds, count, timeout_ms < 0 ? NULL : &now, NULL);
	return wait_until(fds, count, times->now_ns +
			  (int64_t)timeout_ms * 1000000);
}

int usleep(useconds_t us)
{
	return wait_until(NULL, 0, times->now_ns + (int64_t)us * 1000);
}
