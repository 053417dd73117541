/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The census: whether the ranks of these cards can form communicators, found
 * out before NCCL is called. Every rank adds the same cards, and so comes to
 * the same verdict in the same words. Pure: libc only.
 */
#ifndef DDP_NCCL_CENSUS_H
#define DDP_NCCL_CENSUS_H

#include <stdint.h>

#include "ddp_error.h"
#include "nccl/card.h"
#include "nccl/names.h"

struct ddp_census;

/* A census of size ranks, of which it keeps 32 bytes each. The caller destroys
 * it. NULL if there is no memory. */
struct ddp_census *ddp_census_create(uint32_t size,
				     const struct ddp_places *places,
				     struct ddp_error *error);
void ddp_census_destroy(struct ddp_census *census);

/*
 * Add the cards of rank 0, 1, ... in this order. card NULL: what the rank
 * published was no card. Ranks of different teams are in no communicator
 * together, and may be on one GPU.
 */
void ddp_census_add(struct ddp_census *census, uint32_t team,
		    const struct ddp_card *card);

/*
 * The verdict, when all have been added. 0: go on. -1: error has a sentence
 * that is the same on every rank. If ranks could not take part, its code is
 * that of mine, this rank's card, or DDP_ERROR_PEER if mine has none.
 */
int ddp_census_check(struct ddp_census *census, const struct ddp_card *mine,
		     struct ddp_error *error);

#endif
