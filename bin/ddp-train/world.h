/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks train together, and whether the environment agrees. */
#ifndef DDP_TRAIN_WORLD_H
#define DDP_TRAIN_WORLD_H

#include <stdbool.h>

#include "options.h"

struct collective;
struct ddp_error;

/*
 * Choose a backend, open it, and compare it with RANK and WORLD_SIZE.
 * Returns 0, or -1 with error set; collective->table may be open even then,
 * and the other ranks wait there to be told.  It is NULL, with rank 0 and
 * size 1, where the ranks cannot meet.  *quiet: another process says the
 * error, so this one need not.
 */
int world_open(struct collective *collective, enum backend backend,
	       bool *quiet, struct ddp_error *error);

#endif
