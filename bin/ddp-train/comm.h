/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives between the ranks of one world: a table of functions.  Every
 * rank calls the same ones in the same order, from one thread.  None returns
 * a failure: a world that lost a rank ends.
 */
#ifndef DDP_TRAIN_COMM_H
#define DDP_TRAIN_COMM_H

#include <stddef.h>

struct comm {
	const char *name;

	/* Once, first; says who this process is. */
	void (*open)(int *rank, int *size);

	/* Rank r's size bytes of mine to all + r * size, on every rank. */
	void (*gather)(const void *mine, void *all, size_t size);

	/* Rank 0's floats to every rank; count up to INT_MAX. */
	void (*broadcast)(float *values, size_t count);

	/* The sum over all ranks, in place; count up to INT_MAX. */
	void (*sum)(float *values, size_t count);

	/* Once, last, by every rank. */
	void (*close)(void);

	/* End every rank from one of them; does not return. */
	void (*abort)(int status);
};

extern const struct comm comm_self;	/* a world of one process */
extern const struct comm comm_mpi;	/* only if HAVE_MPI */

#endif
