/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells Slurm's own lines from the tasks' in what srun prints on stderr, byte
 * by byte. While it holds, lines of Slurm's are kept, and with them the blocks
 * in which Open MPI's ranks complain of a peer that is gone; all else passes.
 */
#ifndef DDP_SUPERVISOR_SIEVE_H
#define DDP_SUPERVISOR_SIEVE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text.h"

/*
 * Begin with { 0 }. That a step is cancelled a rank may print, too, of another
 * step, which it has started itself: slurmstepd says the number, srun does not.
 */
struct ddp_sieve {
	bool holds;
	bool quiet;			/* srun -Q: it does not say that it ends
					 * the step */
	uint32_t job_id, step_id;	/* the step's own; 0: not known yet */
	bool cancelled;			/* slurmstepd has said that it is */
	bool aborted;			/* srun has, perhaps of another step */
	bool interrupted;		/* srun sends SIGINT to its ranks */
	struct ddp_text unlaunched;	/* nodes where srun could not start its
					 * tasks, as "JOB STEP NODE", a line
					 * each; the caller's */
	uint32_t given_up;		/* an srun of so many tasks has, as some
					 * did not begin in 10 minutes; 0 */
	struct ddp_text failed;		/* ranks that have, srun says, perhaps
					 * of another step: "3,0-1,"; the
					 * caller's */
	size_t first;			/* bytes of failed after the first line
					 * of these, and its node; 0: that line
					 * was too long, or there is none yet */
	char first_node[200];
	bool told;			/* there was one */
	uint32_t aborter;		/* a rank that has called MPI_Abort, as
					 * Open MPI says while the step goes on,
					 * and 1; 0: none */
	enum {
		DDP_SIEVE_GOES_ON,
		DDP_SIEVE_SRUN,		/* srun, as ranks in failed had */
		DDP_SIEVE_OTHERS	/* slurmstepd, or an srun for others */
	} ends;				/* who has said first that it ends */
	size_t reason;			/* SRUN: bytes of failed then */
	char line[200];			/* the beginning of this line */
	size_t length;			/* bytes of it; 0: a new line begins */
	bool in_block;			/* it is of Open MPI's, and is kept */
	enum { DDP_SIEVE_PASS, DDP_SIEVE_DECIDE, DDP_SIEVE_KEEP } now;
	struct ddp_text kept;
};

/* Take bytes; what passes is added to out. */
void ddp_sieve_add(struct ddp_sieve *sieve, const char *bytes, size_t length,
		   struct ddp_text *out);

/* Whether something is held back, if only the beginning of a line. */
bool ddp_sieve_keeps(const struct ddp_sieve *sieve);

/* Hold no more, and add what was kept to out. */
void ddp_sieve_release(struct ddp_sieve *sieve, struct ddp_text *out);

#endif
