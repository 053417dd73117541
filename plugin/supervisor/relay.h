/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of srun's stderr through the supervisor. Bytes pass unchanged, at
 * once, but for lines of Slurm's own while they are held; see supervisor/sieve.h.
 * Nothing here ever waits.
 */
#ifndef DDP_SUPERVISOR_RELAY_H
#define DDP_SUPERVISOR_RELAY_H

#include "supervisor/sieve.h"

struct ddp_relay {
	int in;				/* srun's stderr; -1: not here */
	struct ddp_sieve sieve;
	int64_t kept_ns;		/* since when it holds some; 0 */
	struct ddp_text out;		/* on its way to ours */
	char last;			/* byte that was written there; 0: none */
};

/* Whether there is room for more of srun's. */
bool ddp_relay_reads(const struct ddp_relay *relay);

/* Take what has come; write what has room. */
void ddp_relay_read(struct ddp_relay *relay);
void ddp_relay_flush(struct ddp_relay *relay);

/*
 * Until a failure is known: hold lines of Slurm's for a moment, as they may be
 * what comes of one. Call it again and again while kept_ns is not 0.
 */
void ddp_relay_delay(struct ddp_relay *relay, int64_t now_ns);

/* Print lines of Slurm's that sieve.holds has kept, and hold none from now on. */
void ddp_relay_release(struct ddp_relay *relay);

/* Print all of this on lines of their own, and take it. */
void ddp_relay_say(struct ddp_relay *relay, struct ddp_text *text);

/* At the end: wait until all is written. */
void ddp_relay_finish(struct ddp_relay *relay);

/* After that: close srun's, and forget all. */
void ddp_relay_clear(struct ddp_relay *relay);

#endif
