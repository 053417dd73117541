/* SPDX-License-Identifier: BSD-3-Clause */
/* The roll call: every rank learns who takes part and whether all are well. */
#ifndef DDP_TRAIN_ROLL_H
#define DDP_TRAIN_ROLL_H

struct collective;
struct ddp_error;

enum { ROLL_CELL = 128, ROLL_SETTINGS = 1024 };

/*
 * Tell all ranks where this one runs, with which settings, and what went wrong
 * so far (code DDP_ERROR_NONE: nothing); collective.  Settings are what
 * options_describe() writes, and more of that kind: items of words that end in
 * a blank, the first word of each, and no other, beginning with "--"; shorter
 * than ROLL_SETTINGS.
 *
 * Returns 0, on rank 0 with the table of ranks on stdout, on all with each
 * rank's host in hosts[size] (NULL: unwanted); or -1 on every rank with the
 * same error, which names the first rank concerned: an error of its own, or
 * the first setting that is not rank 0's.
 */
int roll_call(struct collective *collective, const char *settings,
	      const struct ddp_error *mine, char (*hosts)[ROLL_CELL],
	      struct ddp_error *error);

/*
 * What went wrong on any rank, told to all; collective.  Returns 0, or -1 on
 * every rank with the same error, as roll_call().
 */
int roll_errors(struct collective *collective, const struct ddp_error *mine,
		struct ddp_error *error);

#endif
