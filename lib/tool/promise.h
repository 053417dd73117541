/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world that the launcher promised in the environment. The world that is
 * found has to be that one: a rank that works alone although others were
 * started with it would report success for a job that never was one.
 */
#ifndef DDP_TOOL_PROMISE_H
#define DDP_TOOL_PROMISE_H

#include <stdbool.h>

#include "util/error.h"

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

#endif
