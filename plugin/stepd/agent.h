/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: a process of the user's beside the tasks of a node, from before
 * their programs start until the last of them has ended. If the first task that
 * fails has left an error file, as PyTorch's @record writes it, the agent
 * prints one line on standard error of the task that started it.
 */
#ifndef DDP_STEPD_AGENT_H
#define DDP_STEPD_AGENT_H

#include <sys/syscall.h>

#include "stepd/siblings.h"
#include "stepd/task.h"

#ifndef SYS_pidfd_open		/* libc is older than the kernel may be */
#define SYS_pidfd_open 434
#endif

/* What slurmstepd tells the agent when a task has ended. */
struct ddp_end {
	int task;		/* its local rank */
	int status;			/* as of wait(2) */
};

/*
 * Start the agent of these tasks, whose slots say their ranks; task is the one
 * that does it. Sets siblings->agent, and each slot's error_file. Where no
 * agent can run, as on a kernel older than 5.9, siblings->agent is not
 * positive, and nothing is reported.
 */
void ddp_agent_start(const struct ddp_task *task,
		     struct ddp_siblings *siblings);

#endif
