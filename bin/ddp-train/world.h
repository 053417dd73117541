/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks train together, and whether the environment agrees. */
#ifndef DDP_TRAIN_WORLD_H
#define DDP_TRAIN_WORLD_H

#include <stdbool.h>

#include "options.h"

struct comm;
struct ddp_error;

struct world {
	const struct comm *comm;	/* NULL: the ranks cannot meet */
	int rank, size;			/* 0 and 1 without comm */
	bool quiet;			/* another process says the error */
};

/*
 * Choose a backend, open it, and compare it with RANK and WORLD_SIZE.
 * Returns 0, or -1 with error set; world->comm may be open even then, and the
 * other ranks wait there to be told.
 */
int world_open(struct world *world, enum backend backend,
	       struct ddp_error *error);

#endif
