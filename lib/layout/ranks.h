/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of ranks: "0,3-5". It stays text, as a step's size is known late. */
#ifndef DDP_LAYOUT_RANKS_H
#define DDP_LAYOUT_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

/*
 * Check that a list names at least one rank, and none that a world of this size
 * lacks; 0: the size is not known. what, such as an option's name, begins the
 * error. Returns 0, or -1.
 */
int ddp_ranks_check(const char *what, const char *list, uint32_t world_size,
		    struct ddp_error *error);

/* Returns true if a list that was checked has this rank. */
bool ddp_ranks_has(const char *list, uint32_t rank);

#endif
