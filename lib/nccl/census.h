/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Can these ranks form communicators? The checks over all ranks' cards, before
 * NCCL is called. Every rank adds the same cards and so comes to the same
 * verdict in the same words. Pure: libc only.
 */
#ifndef DDP_NCCL_CENSUS_H
#define DDP_NCCL_CENSUS_H

#include <stdint.h>

#include "ddp_error.h"
#include "nccl/card.h"

/* Where the ranks run. */
struct ddp_places {
	const void *of;
	const char *(*host)(const void *of, uint32_t rank);
	uint32_t (*node)(const void *of, uint32_t rank);
};

struct ddp_census;

/* For size ranks; 32 bytes each are kept. places is borrowed. The caller
 * destroys it. NULL for want of memory. */
struct ddp_census *ddp_census_create(uint32_t size,
				     const struct ddp_places *places,
				     struct ddp_error *error);
void ddp_census_destroy(struct ddp_census *census);

/*
 * Add rank 0, 1, ... in this order. card NULL: what it published was no card.
 * Ranks of different teams are not in one communicator and may be on one GPU.
 */
void ddp_census_add(struct ddp_census *census, uint32_t team,
		    const struct ddp_card *card);

/*
 * The verdict when all have been added. 0: go on. -1: error has a sentence that
 * is the same on every rank. Where ranks could not take part its code is that
 * of mine, this rank's card, if that has one, and otherwise DDP_ERROR_PEER.
 */
int ddp_census_check(struct ddp_census *census, const struct ddp_card *mine,
		     struct ddp_error *error);

#endif
