/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The roster of a communicator: its ranks, and which of them are roots. A root
 * makes a unique id and listens while others connect. Pure: libc only.
 */
#ifndef DDP_NCCL_ROSTER_H
#define DDP_NCCL_ROSTER_H

#include <stdint.h>

#include "ddp_error.h"

#define DDP_ONE_ROOT UINT32_MAX		/* ranks_per_root for one root only */

/* A communicator, as one of its ranks needs to know it. */
struct ddp_roster {
	uint32_t size;		/* ranks; 0: this rank is in none */
	uint32_t rank;		/* of this one */
	uint32_t root_count;
	uint32_t *roots;	/* [root_count] ranks in the job: the first of
				 * each block of ranks, which NCCL sends to the
				 * unique id of the same index */
};

/*
 * The communicator of rank me: the ranks, of the job's count, whose color is
 * the same as its own, ordered by key, then by rank in the job. color NULL: all
 * are the same; a color of UINT32_MAX is in none. key NULL: ordered by rank. A
 * root serves at most ranks_per_root ranks, at least 1. The caller destroys the
 * roster. Returns 0, or -1 if there is no memory.
 */
int ddp_roster_create(struct ddp_roster *roster, uint32_t count,
		      const uint32_t *color, const uint32_t *key, uint32_t me,
		      uint32_t ranks_per_root, struct ddp_error *error);
void ddp_roster_destroy(struct ddp_roster *roster);

/*
 * The first of the ranks that ncclCommInitRankScalable sends to a root, of size
 * ranks in all (bootstrap.cc, firstRankFromRoot, unchanged since NCCL 2.23):
 * the first size % roots blocks hold one rank more than the others.
 */
uint32_t ddp_roster_get_first(uint32_t root, uint32_t roots, uint32_t size);

#endif
