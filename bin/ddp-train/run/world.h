/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks that train together: how they meet, whether they are those that the
 * environment promises, and the roll call, which tells every rank whether one
 * has failed.
 */
#ifndef DDP_TRAIN_WORLD_H
#define DDP_TRAIN_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "run/train_options.h"

struct collective;
struct ddp_error;

enum { WORLD_CELL = 128 };

/*
 * Checks that a table of functions was built for the interface that this
 * program knows. Returns 0, or -1 with error set.
 */
int world_check_abi(const char *table, uint32_t known, uint32_t built,
		    struct ddp_error *error);

/*
 * meet.c: ranks that compute on GPUs meet over NCCL, the others over MPI, where
 * each would wait for ranks that have gone the other way. So before either
 * begins, all ranks compare their ways, by libddp, over PMIx. Collective, if
 * the launcher offers PMIx; else it does nothing. Returns 0; or -1 with error
 * set if this rank cannot join the others on its way. Ends all ranks, with a
 * sentence, if their ways differ or one does not come.
 */
int meet_compare(const struct collective *collective, enum backend way,
		 struct ddp_error *error);

/*
 * Choose options' backend, open it, and compare it with RANK and WORLD_SIZE.
 * Returns 0, or -1 with error set. Even then collective->table may be open, and
 * the other ranks wait there for the error. If the ranks cannot meet, it is
 * NULL, with rank 0 and size 1. *quiet: another process prints the error.
 */
int world_open(struct collective *collective, const struct options *options,
	       bool *quiet, struct ddp_error *error);

/*
 * Tell all ranks where this one runs, with which settings, and what went wrong
 * so far (code DDP_ERROR_NONE: nothing); collective. Settings are what
 * tool_options_describe() writes, and more such lines, as for tool_agree().
 *
 * Returns 0, on rank 0 with the table of ranks on stdout, on all with each
 * rank's host in hosts[size]; or -1 on every rank with the same error, which
 * names the first rank concerned: an error of its own, or the first setting
 * that is not rank 0's.
 */
int world_call_roll(struct collective *collective, const char *settings,
		    const struct ddp_error *mine, char (*hosts)[WORLD_CELL],
		    struct ddp_error *error);

/*
 * Tell all ranks what went wrong on any; collective. Returns 0, or -1 on
 * every rank with the same error, as world_call_roll().
 */
int world_share_errors(struct collective *collective,
		       const struct ddp_error *mine, struct ddp_error *error);

#endif
