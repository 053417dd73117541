/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for other ranks, but not for ever. A rank that has waited as long as
 * it may asks all others whether they are there. Those that wait as well
 * answer. Who does not is stopped, cut off or busy: it is named, and all ranks
 * end. One rank asks: lower ones begin first, and who is asked by a lower one
 * leaves it to that.
 *
 * This costs a short wait nothing: a rank reads the clock, and looks for
 * questions, only in a wait that is long.
 */
#ifndef DDP_TRAIN_MPI_WATCH_H
#define DDP_TRAIN_MPI_WATCH_H

#include <mpi.h>
#include <stdbool.h>

struct collective;

enum { WATCH_HOST = 64 };

struct watch {
	MPI_Comm comm;			/* of questions and answers alone */
	int rank, size;			/* within the world */
	double timeout;			/* seconds; 0: for ever */
	char (*hosts)[WATCH_HOST];	/* [size] */
	bool *here;			/* [size]: who has answered */
	int question;			/* number of the last one */
};

/* One wait, zeroed at first. Times are seconds of it. */
struct wait {
	unsigned int rounds;
	double clock;			/* when it was last read; 0: never */
	double waited;			/* without time in which this process
					   was itself stopped */
	double looked;			/* for questions, last */
	double silent;			/* ask nobody before */
	double asked;			/* 0: not yet */
};

/* Opens a watch of all ranks of MPI_COMM_WORLD, with collective's timeout. */
void watch_open(struct watch *watch, struct collective *collective);

/*
 * Runs one round of a wait. Call it after a look at whether what is waited for
 * has come. May end the world.
 */
void watch_wait(struct watch *watch, struct wait *wait);

/* Wait until MPI has done what was begun. */
void watch_finish(struct watch *watch, MPI_Request *request);

void watch_close(struct watch *watch);

#endif
