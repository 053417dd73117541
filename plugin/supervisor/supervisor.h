/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supervisor of a --ddp step: the first process of srun, which starts the
 * real srun as its child and watches. Read attempt.c first: one attempt at the
 * step, from the start of srun to its end. What happens goes into the facts of
 * plugin/verdict: child.c has srun and its signals, relay.c and sieve.c its
 * stderr, agents.c the agents and what they say, lost_nodes.c nodes that are
 * lost, and watchdog.c steps that hang. verdict/decide.c then decides, and act.c
 * does what follows. report.c writes the report, timer.c knows when the job ends,
 * and supervisor.c goes from one attempt to the next.
 * This header is what plugin/srun calls.
 */
#ifndef DDP_SUPERVISOR_H
#define DDP_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "options/notice.h"
#include "util/error.h"
#include "verdict/restart.h"
#include "wire/proof.h"

/* What the user wants. */
struct ddp_supervisor {
	bool pty;		/* srun's stderr stays the terminal */
	bool quiet;		/* srun says of itself only what is wrong */
	bool kill;		/* a failure ends the step */
	bool alone;		/* and Slurm leaves that to the supervisor */
	bool own_job;		/* this srun makes its own job */
	uint32_t grace_s;	/* time for the others to end; 0: none */
	uint32_t watchdog_s;	/* a step may hang for so long; 0: for ever */
	struct ddp_notice notice;	/* a signal before the job's end */
	struct ddp_restart restart;	/* max 0: there is one attempt */
	const char *launcher;	/* such as "torchrun", which starts the ranks;
				 * NULL: none does */
	const char *report;	/* the file for a report; NULL: none */
	uint16_t port_first, port_last;	/* to listen at; 0: any */

	int listener;		/* filled in by ddp_supervisor_open */
	uint16_t port;
};

/*
 * Find all that can be refused: a port, and a file for the report. Returns 0,
 * or -1 with an error that is whole sentences. 1: in this process there can be
 * no supervisor, for a reason that is a sentence.
 */
int ddp_supervisor_open(struct ddp_supervisor *supervisor,
			struct ddp_error *error);

/*
 * Fork, for each attempt at the step. Returns 0 in the child, which must run
 * srun again, as supervisor->restart says and with the secret that is filled
 * in; the parent watches, and exits with the code of the last attempt. -1 if
 * there can be no child.
 */
int ddp_supervisor_run(struct ddp_supervisor *supervisor,
		       struct ddp_secret *secret);

#endif
