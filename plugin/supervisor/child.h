/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real srun, as a child, and the signals of both. The child is in the same
 * process group: what a terminal sends, it gets itself, and what is sent to our
 * process alone is passed on. Where it stops, so do we, as a shell that does
 * job control looks at us.
 */
#ifndef DDP_SUPERVISOR_CHILD_H
#define DDP_SUPERVISOR_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

enum { DDP_CHILD_HANDLED = 5 };

/* The step that srun begins to launch. */
struct ddp_child_launch {
	uint32_t job_id, step_id, tasks;
};

struct ddp_child {
	pid_t pid;
	int signals;		/* a signalfd */
	bool ended;
	int status;		/* as of wait(2) */
	int64_t told_ms;	/* the last signal that ends a step; 0: none */
	int64_t interrupted_ns;	/* the last SIGINT; 0: none */
	bool waits;		/* signals may have to be passed on */
	int64_t waits_ms;	/* since then */
	uint64_t taken;		/* which, as a mask */
	uint64_t again;		/* those of them that came once more */
	pid_t mirror;		/* a process that shows them; 0: none */
	pid_t helper;		/* another child; 0: none */
	int answer;		/* its exit code; -1: none yet */
	pid_t asker;		/* the child of ddp_child_ask; 0: none */
	struct ddp_child_launch launch;
	int launch_told;	/* numbers of it that are known */
	int64_t launched_ms;	/* all are, since then; 0: not yet */
	struct sigaction before[DDP_CHILD_HANDLED];
};

/*
 * Blocks the signals that a supervisor reads in all other threads, once and for
 * good. Returns 0, or -1 with an error if there is one that does not.
 */
int ddp_child_block(struct ddp_error *error);

/*
 * Fork. Returns 0 in the child and 1 in the parent, -1 on failure. Where piped
 * is given, it becomes the parent's end of a pipe that is the child's stderr.
 */
int ddp_child_start(struct ddp_child *child, int *piped);

/*
 * In srun: tell the supervisor, if that is still its parent, what is launched
 * now. It is called where nothing is left for srun to wait for.
 */
void ddp_child_tell_launch(pid_t supervisor,
			   const struct ddp_child_launch *launch);

/*
 * The signalfd can be read: take signals, see who has ended or stopped. pass is
 * for later, while waits is set: what was sent to our process alone is passed
 * on. What was sent to the whole process group srun gets by itself.
 */
void ddp_child_read(struct ddp_child *child);
void ddp_child_pass(struct ddp_child *child);

/*
 * Start a helper, a fork in which run's result becomes the exit code. It takes
 * the place of one that is there already.
 */
void ddp_child_help(struct ddp_child *child, int (*run)(const void *),
		    const void *argument);

/*
 * Starts another helper, whose result is what it prints. Returns the end of a pipe
 * from it, which does not block; -1: there can be none. Both helpers end with the
 * supervisor.
 */
int ddp_child_ask(struct ddp_child *child, int (*run)(const void *),
		  const void *argument);

/* Kill a helper, if it has not ended yet, with what it has started. */
void ddp_child_end(pid_t *helper);

/* Whether a signal that ends a step has come, also since srun ended. */
bool ddp_child_was_told(const struct ddp_child *child);

/*
 * srun has ended: give back what start has taken. Signals stay blocked, for the
 * next one.
 */
void ddp_child_clear(struct ddp_child *child);

#endif
