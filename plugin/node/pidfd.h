/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that stand for a process, and for no later one of its number:
 * pidfds or, where the kernel has none (before Linux 5.3), open files of /proc,
 * which are looked at every 20 ms.
 */
#ifndef DDP_NODE_PIDFD_H
#define DDP_NODE_PIDFD_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns one, to be closed, or -1 with errno. */
int ddp_pidfd_open(pid_t pid);

/*
 * poll(2) until this time of ddp_clock_ms(). Of the list, the last pidfds stand
 * for processes, and are readable once those have ended.
 */
int ddp_pidfd_poll(struct pollfd *fds, nfds_t others, nfds_t pidfds,
		   int64_t until_ms);

/*
 * Send a signal to the process, whose number is pid; 0 only finds out whether it
 * is there, as it is until its parent has read its status. Returns 0, or -1.
 */
int ddp_pidfd_kill(int pidfd, pid_t pid, int number);

#endif
