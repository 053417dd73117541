/* SPDX-License-Identifier: BSD-3-Clause */
/* The roll call: every rank learns who takes part and whether all are well. */
#ifndef DDP_TRAIN_ROLL_H
#define DDP_TRAIN_ROLL_H

struct ddp_error;
struct world;

/*
 * Tell all ranks where this one runs, with which settings (one line of text)
 * and what went wrong so far (code DDP_ERROR_NONE: nothing); collective.
 * Returns 0, on rank 0 with the table of ranks on stdout; or -1 on every rank
 * with the same error, which names the first rank concerned: an error of its
 * own, or settings that are not rank 0's.
 */
int roll_call(const struct world *world, const char *settings,
	      const struct ddp_error *mine, struct ddp_error *error);

#endif
