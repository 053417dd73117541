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
#include "verdict/said.h"

/* Begin with { .said }; job_id and step_id are 0 until an agent tells. */
struct ddp_sieve {
	struct ddp_said *said;		/* it is noted there */
	int64_t now_ns;			/* as said by now */
	bool holds;
	bool quiet;			/* srun -Q: it does not say that it ends
					 * the step */
	uint32_t job_id, step_id;	/* the step's own */
	char line[201];			/* the beginning of this line, and a NUL */
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
