/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See pidfd.h. An open file of /proc stays that of its process: it can no more
 * be read when that is gone, whoever has its number then.
 */
#define _GNU_SOURCE
#include "node/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/kernel.h"
#include "util/clock.h"

#ifndef SYS_pidfd_open		/* libc is older than the kernel may be */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

enum { LOOK_MS = 20, STAT_SIZE = 1024 };

/* The kernel has no pidfds. */
static bool old;

int ddp_pidfd_open(pid_t pid)
{
	char path[32];
	int fd = -1;

	if (!old) {
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		/* EPERM: a container's filter that does not know the call */
		old = fd < 0 && (errno == ENOSYS || errno == EPERM);
	}
	if (!old)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Returns -1 if it is gone, and its parent has read its status. */
static int read_process(int fd, struct ddp_kernel_process *process)
{
	char text[STAT_SIZE];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return -1;
	text[got] = '\0';
	return ddp_kernel_read_process(text, process);
}

/* A first thread that has ended is a zombie, too, while others run. */
static bool has_ended(int fd)
{
	struct ddp_kernel_process process;

	return read_process(fd, &process) < 0 ||
	       (process.state == 'Z' && process.threads <= 1);
}

int ddp_pidfd_poll(struct pollfd *fds, nfds_t others, nfds_t pidfds,
		   int64_t until_ms)
{
	struct timespec time;
	int64_t left;
	nfds_t i;
	int rc;

	do {
		left = until_ms - ddp_clock_ms();
		if (old && left > LOOK_MS)
			left = LOOK_MS;
		time.tv_sec = left > 0 ? left / 1000 : 0;
		time.tv_nsec = left > 0 ? left % 1000 * 1000000 : 0;
		rc = ppoll(fds, old ? others : others + pidfds, &time, NULL);
		for (i = others; old && rc >= 0 && i < others + pidfds; i++) {
			fds[i].revents = fds[i].fd >= 0 &&
				has_ended(fds[i].fd) ? POLLIN : 0;
			rc += fds[i].revents != 0;
		}
	} while (rc == 0 && ddp_clock_ms() < until_ms);
	return rc;
}

int ddp_pidfd_kill(int pidfd, pid_t pid, int number)
{
	struct ddp_kernel_process process;

	if (old)
		return read_process(pidfd, &process) < 0 ? -1 :
			kill(pid, number);
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}
