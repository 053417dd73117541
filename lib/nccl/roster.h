/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is in a communicator, as what, and which of its ranks are roots: those
 * that make a unique id and listen while the others connect. Pure: libc only.
 */
#ifndef DDP_NCCL_ROSTER_H
#define DDP_NCCL_ROSTER_H

#include <stdint.h>

#include "ddp_error.h"

#define DDP_ONE_ROOT UINT32_MAX		/* ranks_per_root: no more than one */

/* One communicator, as one of its ranks needs to know it. */
struct ddp_roster {
	uint32_t size;		/* ranks; 0: this rank is in none */
	uint32_t rank;		/* of this one */
	uint32_t root_count;
	uint32_t *roots;	/* [root_count], ranks in the job, each the
				 * first of the block of ranks that NCCL sends
				 * to the unique id of that index */
};

/*
 * Plan the communicator of rank me: those of the job's count ranks whose color
 * is the same as its own, ordered by key, then by rank in the job. color NULL:
 * all are the same; a color of UINT32_MAX is in none. key NULL: ordered by
 * rank. One root serves at most ranks_per_root, at least 1. The caller destroys
 * roster. Returns 0, or -1 for want of memory.
 */
int ddp_roster_create(struct ddp_roster *roster, uint32_t count,
		      const uint32_t *color, const uint32_t *key, uint32_t me,
		      uint32_t ranks_per_root, struct ddp_error *error);
void ddp_roster_destroy(struct ddp_roster *roster);

/*
 * The first of the size ranks that ncclCommInitRankScalable has meet at root,
 * of roots (bootstrap.cc, firstRankFromRoot, alike since NCCL 2.23): the first
 * size % roots blocks hold one rank more than the others.
 */
uint32_t ddp_roster_get_first(uint32_t root, uint32_t roots, uint32_t size);

#endif
