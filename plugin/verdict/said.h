/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What srun and slurmstepd have said on srun's stderr of the step and its end; the
 * supervisor's sieve fills it in. srun's lines carry no step's number, and a rank
 * that has started another step prints the same: so what agents tell outranks
 * them. Times are those of the line, by ddp_clock_ns(); 0: it was not said.
 */
#ifndef DDP_VERDICT_SAID_H
#define DDP_VERDICT_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text.h"

struct ddp_facts;
struct ddp_verdict;

/* One of these has said first that the step ends. */
enum ddp_said_ends {
	DDP_SAID_NOTHING,
	DDP_SAID_SRUN,		/* srun, as ranks in failed had */
	DDP_SAID_OTHERS		/* slurmstepd, or an srun for others */
};

struct ddp_said {
	int64_t cancelled_ns;	/* slurmstepd, last: the step is cancelled */
	int64_t aborted_ns;	/* srun, last: its step is aborted */
	int64_t interrupted_ns;	/* srun, last: it sends SIGINT to its ranks */
	int64_t failed_ns;	/* srun, first: ranks have failed */
	int64_t last_ns;	/* one of these but SIGINT, last */
	struct ddp_text failed;	/* those ranks, "3,0-1,"; the owner's */
	bool launch_failed;	/* slurmstepd could not start some of them */
	enum ddp_said_ends ends;
	int64_t ends_ns;	/* when they did */
	size_t reason;		/* SRUN: bytes of failed then */
	uint32_t given_up;	/* an srun of so many tasks has, as some did not
				 * begin in 10 minutes; 0 */
	int64_t aborter_ns;	/* Open MPI: a rank has called MPI_Abort, */
	uint32_t aborter;	/* this one */
	struct ddp_text unlaunched;	/* nodes where srun could not start its
					 * tasks, as "JOB STEP NODE", a line
					 * each; the owner's */
};

/* srun's lines were of another step: forget them. */
void ddp_said_forget(struct ddp_said *said);

/* Returns true if what was said then still explains what ranks do now. */
bool ddp_said_is_recent(int64_t said_ns, int64_t now_ns);

/*
 * Returns true if Slurm has said so lately that the step, or another, is
 * cancelled.
 */
bool ddp_said_cancelled(const struct ddp_said *said, int64_t now_ns);

/*
 * Returns true if slurmstepd could not start some ranks of a step that is
 * watched: srun has said so for long enough, and no agent tells of all ranks.
 * Which they are is not known: srun counts those of each component from 0.
 */
bool ddp_said_lacks_ranks(const struct ddp_facts *facts, int64_t now_ns);

/* Returns true if srun ends the step for what this verdict says. */
bool ddp_said_is_reason(const struct ddp_facts *facts,
			const struct ddp_verdict *verdict);

/*
 * Finds the lowest rank that has failed, as srun alone has said for long enough:
 * no agent tells of it, or will. Returns whether there is one.
 */
bool ddp_said_find_unwatched(const struct ddp_facts *facts, int64_t now_ns,
			     uint32_t *rank);

#endif
