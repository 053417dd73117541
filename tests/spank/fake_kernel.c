/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake of what the kernel tells of a task's CPUs and memory, so that a case
 * can have a larger machine than this one. The plugin asks it in the usual way,
 * because this program's symbols come before libc's. It binds nothing: it keeps
 * what was set and prints it. Its sleep does not sleep.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "place/machine.h"

#define HASTE 10	/* times as fast as true */
#define NEWER 424	/* the first system call that Linux 4.18 lacks */

static struct {
	struct ddp_cpuset cpus;
	int mode;
	unsigned long nodes;
	unsigned int binds;	/* how often CPUs were set */
	unsigned int naps;
	bool blind, fixed, lethal, hasty, device, old;
	unsigned int tasks;	/* before all of them have come there is no haste */
	atomic_uint *come;	/* the tasks share it */
	bool is_here;		/* this one has come */
} kernel;

/* Serves sched_setaffinity and a word of a case. */
static int cpus_set(const struct ddp_cpuset *cpus)
{
	if (ddp_cpuset_empty(cpus)) {
		errno = EINVAL;
		return -1;
	}
	kernel.cpus = *cpus;
	return 0;
}

void fake_kernel_reset(void)
{
	memset(&kernel, 0, sizeof(kernel));
	ddp_cpuset_add(&kernel.cpus, 0);
}

void fake_kernel_hurry(unsigned int tasks)
{
	kernel.hasty = true;
	kernel.tasks = tasks;
	kernel.come = mmap(NULL, sizeof(*kernel.come), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kernel.come == MAP_FAILED)
		abort();
}

void fake_kernel_come(void)
{
	if (kernel.come && !kernel.is_here)
		atomic_fetch_add(kernel.come, 1);
	kernel.is_here = true;
}

bool fake_kernel_set(const char *word)
{
	struct ddp_cpuset cpus;

	if (strncmp(word, "#cpus=", 6) == 0) {
		if (ddp_cpuset_parse(word + 6, &cpus, NULL) < 0)
			return false;
		return cpus_set(&cpus) == 0;
	}
	if (strcmp(word, "#membind") == 0) {
		kernel.mode = MPOL_BIND;
		kernel.nodes = 1;
		return true;
	}
	kernel.blind |= strcmp(word, "#blind") == 0;
	kernel.fixed |= strcmp(word, "#fixed") == 0;
	kernel.lethal |= strcmp(word, "#lethal") == 0;
	kernel.device |= strcmp(word, "#device") == 0;
	kernel.old |= strcmp(word, "#old") == 0;
	return kernel.blind || kernel.fixed || kernel.lethal ||
	       kernel.device || kernel.old;
}

void fake_kernel_print(void)
{
	static const char *const modes[] = { "default", "preferred", "bind" };
	char *text = malloc(DDP_CPUSET_TEXT_SIZE);

	if (!text || ddp_cpuset_format(&kernel.cpus, text,
				       DDP_CPUSET_TEXT_SIZE) < 0)
		abort();
	printf("#cpus=%s\n#binds=%u\n#memory=%s:%lx\n", text, kernel.binds,
	       modes[kernel.mode], kernel.nodes);
	free(text);
}

unsigned int fake_kernel_naps(void)
{
	return kernel.naps;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
	size_t all = sizeof(kernel.cpus);

	(void)pid;
	if (kernel.lethal) {
		fake_kernel_come();
		raise(SIGKILL);
	}
	if (kernel.blind) {
		errno = EPERM;
		return -1;
	}
	memset(mask, 0, size);
	memcpy(mask, &kernel.cpus, size < all ? size : all);
	return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *mask)
{
	struct ddp_cpuset cpus;

	(void)pid;
	if (kernel.fixed) {
		errno = EPERM;
		return -1;
	}
	ddp_cpuset_clear(&cpus);
	memcpy(&cpus, mask, size < sizeof(cpus) ? size : sizeof(cpus));
	kernel.binds++;
	return cpus_set(&cpus);
}

static long policy_get(int *mode)
{
	*mode = kernel.mode;
	return 0;
}

static long policy_set(int mode, const unsigned long *nodes)
{
	if (kernel.fixed) {
		errno = EPERM;
		return -1;
	}
	kernel.mode = mode;
	kernel.nodes = *nodes;
	return 0;
}

/* No device file, whatever the machine has, or one that may be opened */
int glob(const char *pattern, int flags,
	 int (*on_error)(const char *path, int why), glob_t *found)
{
	int (*real)(const char *, int, int (*)(const char *, int), glob_t *);

	if (!kernel.device)
		return GLOB_NOMATCH;
	*(void **)&real = dlsym(RTLD_NEXT, "glob");
	return real(strncmp(pattern, "/dev/", 5) == 0 ? "/dev/null" : pattern,
		    flags, on_error, found);
}

/*
 * These calls of the kernel have no function in libc, or not in each. It
 * passes on six arguments, though a caller may have given fewer.
 */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	long (*real)(long, ...), a[6];
	va_list args;
	size_t i;

	va_start(args, number);
	for (i = 0; i < COUNT(a); i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_get_mempolicy)
		return policy_get((int *)a[0]);
	if (number == SYS_set_mempolicy)
		return policy_set((int)a[0], (const unsigned long *)a[1]);
	if (number >= NEWER && kernel.old) {
		errno = ENOSYS;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int nanosleep(const struct timespec *time, struct timespec *rest)
{
	(void)time;
	(void)rest;
	kernel.naps++;
	return 0;
}

static void await_tasks(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	fake_kernel_come();
	while (atomic_load(kernel.come) < kernel.tasks)
		ppoll(NULL, 0, &moment, NULL);
}

/*
 * Deadlines come sooner in haste, all by the same factor. A task that is only slow
 * is waited for.
 */
int sem_timedwait(sem_t *sem, const struct timespec *deadline)
{
	int (*real)(sem_t *, const struct timespec *);
	struct timespec now, at = *deadline;
	int64_t left;

	*(void **)&real = dlsym(RTLD_NEXT, "sem_timedwait");
	if (kernel.hasty)
		await_tasks();
	clock_gettime(CLOCK_REALTIME, &now);
	left = (at.tv_sec - now.tv_sec) * INT64_C(1000000000) +
	       at.tv_nsec - now.tv_nsec;
	if (kernel.hasty && left > 0) {
		left = left / HASTE + now.tv_nsec;
		at.tv_sec = now.tv_sec + left / 1000000000;
		at.tv_nsec = left % 1000000000;
	}
	return real(sem, &at);
}

/* Always the same, so that one run can be compared with another. */
ssize_t getrandom(void *buffer, size_t size, unsigned int flags)
{
	(void)flags;
	memset(buffer, 0x5a, size);
	return (ssize_t)size;
}

/*
 * Make no file, and always name the same. Where a case names a folder, make one,
 * and a link to it in there; "full" is a /dev/shm without room. With FAKE_TORN the
 * task is killed then.
 */
int mkostemp(char *path, int flags)
{
	const char *folder = getenv("FAKE_FILES");
	int (*real)(char *, int), fd;
	char link[4096];

	if (!folder) {
		memset(strchr(path, 'X'), '5', strlen(strchr(path, 'X')));
		return open("/dev/null", flags);
	}
	if (strcmp(folder, "full") == 0) {
		errno = ENOSPC;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "mkostemp");
	fd = real(path, flags);
	snprintf(link, sizeof(link), "%s%s", folder, strrchr(path, '/'));
	if (fd < 0 || symlink(path, link) < 0)
		abort();
	if (getenv("FAKE_TORN"))
		kill(getpid(), SIGKILL);
	return fd;
}

/* Do not end a short wait: a busy machine may be late. One of 1 ms is a pause. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	const struct timespec time = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * 1000000L,
	};
	bool ends = timeout >= 1000 || timeout == 1;

	return ppoll(fds, count, ends ? &time : NULL, NULL);
}

/* Do not set a limit on memory: the sanitizers need more before that. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	(void)resource;
	(void)limit;
	return 0;
}
