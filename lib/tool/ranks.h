/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a program: those that the launcher promised in the environment,
 * and how those that were found agree.
 */
#ifndef DDP_TOOL_RANKS_H
#define DDP_TOOL_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"

/*
 * The world that was promised. The world that is found has to be that one: a
 * rank that works alone although others were started with it would report
 * success for a job that never was one.
 */
struct tool_promise {
	int rank, size;		/* RANK and WORLD_SIZE; -1: not set */
	int tasks;		/* of the Slurm step; -1: there is none */
	bool mpi;		/* MPI_Init understands the launcher */
};

/*
 * Read the environment. Returns 0, or -1 with error set if RANK or WORLD_SIZE
 * is no number that it can be; it then is -1.
 */
int tool_promise_read(struct tool_promise *promise, struct ddp_error *error);

/*
 * Returns true if this is the first of the tasks that a launcher started, or
 * the only one. If the ranks did not meet, all have the same error and the
 * first prints it.
 */
bool tool_promise_is_first(void);

/*
 * Call it before MPI_Init, which without a launcher makes a world of each
 * process. Returns 0, or -1 with error set if this is one of several processes
 * and no MPI launcher has started it.
 */
int tool_promise_check_mpi(const struct tool_promise *promise,
			   struct ddp_error *error);

/*
 * Returns 0 if the world that backend found is the one that was promised, or -1
 * with error set.
 */
int tool_promise_compare(const struct tool_promise *promise,
			 const char *backend, int rank, int size,
			 struct ddp_error *error);

/*
 * The ranks agree on whether all is well: what fails on one of them fails on
 * all, with one message.
 */

enum { TOOL_SETTINGS_SIZE = 2048 };

/* The ranks, and what carries bytes between them: MPI, PMIx or NCCL. */
struct tool_ranks {
	int rank, size;

	/* Rank r's size bytes of mine to all + r * size; collective. */
	void (*exchange)(void *context, const void *mine, void *all,
			 size_t size);

	/* End every rank, with this sentence; does not return. */
	void (*abort)(void *context, const char *sentence);
	void *context;
};

/*
 * Collective: mine is what went wrong on this rank (code DDP_ERROR_NONE:
 * nothing), settings what must be the same on all, as lines, in less than
 * TOOL_SETTINGS_SIZE bytes. Returns 0, or -1 on every rank with the same error.
 * It names the first rank that has one, unless all have the same; or it is
 * DDP_ERROR_PEER and names the first line that is not rank 0's.
 */
int tool_agree(const struct tool_ranks *ranks, const char *settings,
	       const struct ddp_error *mine, struct ddp_error *error);

#endif
