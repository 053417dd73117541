/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ATTEMPT_H
#define DDP_SUPERVISOR_ATTEMPT_H

#include <sys/resource.h>

#include "supervisor/absent.h"
#include "supervisor/agents.h"
#include "supervisor/child.h"
#include "supervisor/relay.h"
#include "supervisor/supervisor.h"
#include "supervisor/timer.h"
#include "supervisor/watchdog.h"
#include "verdict/verdict.h"

/*
 * One attempt at the step: srun, and what became of its ranks. Times are those
 * of now.h; 0: not yet.
 */
struct ddp_attempt {
	const struct ddp_supervisor *wish;
	struct ddp_child child;
	struct ddp_relay relay;
	struct ddp_step step;
	struct ddp_agents agents;
	struct ddp_absent absent;
	struct ddp_timer timer;
	struct ddp_watchdog watchdog;
	struct ddp_verdict verdict;

	/* attempt.c */
	struct rlimit files;	/* our limit before: that of the tasks */
	int64_t early_ns;	/* ranks have ended, and all others have begun */
	bool told_early;
	int64_t untold_ns;	/* a failure of which no agent tells ends it */
	bool begun;		/* the first agent is here */
	int64_t ended_ns;	/* srun has ended */

	/* judge.c */
	int64_t failed_ns;	/* the first failure was heard of */
	int64_t decided_ns;	/* there is a verdict */
	bool hidden;		/* it names nobody: see hidden.h */
	bool ended_by_user;	/* no failure: it or srun was told to end */
	bool told;		/* srun was, by a signal */
	bool told_others;

	/* cancel.c */
	bool cancelled;		/* slurmstepd has said that the step is */
	bool aborted;		/* an srun has said that its step is */
	int64_t doubted_ns;	/* slurmctld was asked about the job */
	bool runs;		/* it has answered that it simply runs */

	/* ending.c */
	int64_t killed_ns;	/* KILL was sent to all agents */
	int64_t over_ns;	/* nothing is left for srun to wait for; while
				 * it writes, this is now */
	uint64_t written;	/* bytes, by srun, when that was looked at */
	int64_t asked_ns;	/* scancel was started, or squeue */
	bool struck;		/* srun itself was killed by us */
};

/*
 * Start srun and watch it to its end. Returns 0 in the child, which must run
 * srun again, and 1 in the parent at the end of the step; -1 if there can be no
 * child. clear gives all back, for the next attempt.
 */
int ddp_attempt_run(struct ddp_attempt *attempt,
		    const struct ddp_supervisor *wish,
		    const struct ddp_secret *secret);
void ddp_attempt_clear(struct ddp_attempt *attempt);

/* Its exit code. */
int ddp_attempt_code(const struct ddp_attempt *attempt);

/* Whether a rank or a node was named. */
bool ddp_attempt_named(const struct ddp_attempt *attempt);

/* Whether others have killed srun: what the ranks do follows from that. */
bool ddp_attempt_was_killed(const struct ddp_attempt *attempt);

/* Whether a user has ended it, or has pressed Ctrl-C since it failed. */
bool ddp_attempt_unwanted(const struct ddp_attempt *attempt);

/* Whether no process of it can still run on a node that is not lost. */
bool ddp_attempt_gone(const struct ddp_attempt *attempt);

#endif
