/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assignment problem: give each row a column of its own so that the sum
 * of costs is the least. Exact, in O(n^3) (shortest augmenting paths with
 * potentials, after Kuhn and Munkres).
 */
#ifndef DDP_PLACE_ASSIGN_H
#define DDP_PLACE_ASSIGN_H

#include <stdint.h>

#include "util/error.h"

enum { DDP_ASSIGN_MAX = 512 };			/* rows */
#define DDP_ASSIGN_NEVER (INT64_C(1) << 40)	/* cost of a forbidden pair */

/*
 * cost is [count][count], by rows, each from 0 to below DDP_ASSIGN_NEVER, or
 * DDP_ASSIGN_NEVER itself. Writes each row's column to columns[count]. Of
 * several best answers it is always the one in which row 0 has the lowest
 * column that it has in any of them, then row 1, and so on: the same on every
 * machine, and columns[i] = i wherever all costs are equal.
 *
 * Returns 0, or -1 with columns undefined if a forbidden pair cannot be
 * avoided, if count is not 1 to DDP_ASSIGN_MAX, or if memory is short.
 */
int ddp_assign(uint32_t count, const int64_t *cost, uint32_t *columns,
	       struct ddp_error *error);

#endif
