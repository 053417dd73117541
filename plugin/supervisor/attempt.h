/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ATTEMPT_H
#define DDP_SUPERVISOR_ATTEMPT_H

#include <sys/resource.h>

#include "supervisor/agents.h"
#include "supervisor/child.h"
#include "supervisor/lost_nodes.h"
#include "supervisor/relay.h"
#include "supervisor/supervisor.h"
#include "supervisor/timer.h"
#include "supervisor/watchdog.h"
#include "verdict/facts.h"

/* act.c keeps this for itself. Times are ddp_clock_ns(); 0: not yet. */
struct ddp_act {
	bool noticing;		/* the time of --ddp-signal is waited for */
	int64_t early_ns;	/* ranks have ended, and all others have begun */
	bool told_early, told_others, told_killed;	/* the user knows */
	int64_t over_ns;	/* nothing is left for srun to wait for; while it
				 * writes, this is now */
	uint64_t written;	/* bytes, by srun, when that was looked at */
	int64_t epilog_ns;	/* squeue was asked for the step */
};

/* An attempt at the step is srun, and what became of its ranks. */
struct ddp_attempt {
	const struct ddp_supervisor *wish;
	struct ddp_facts facts;
	struct ddp_child child;
	struct ddp_relay relay;
	struct ddp_agents agents;
	struct ddp_absent absent;
	struct ddp_timer timer;
	struct ddp_watchdog watchdog;
	struct ddp_act act;
	struct rlimit files;	/* our limit before: that of the tasks */
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

/* Returns true if a user has ended it, or wants it to end, by now. */
bool ddp_attempt_unwanted(struct ddp_attempt *attempt);

#endif
