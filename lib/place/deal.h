/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heart of split.h: units are given to ranks, one at a time. Private to
 * split.c.
 */
#ifndef DDP_PLACE_DEAL_H
#define DDP_PLACE_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "place/cpuset.h"
#include "place/machine.h"

#define DDP_DEAL_NONE UINT32_MAX

/* A unit is dealt out: a core or a thread, neighbours in machine->cpus. */
struct ddp_unit {
	uint32_t first, end;
	uint32_t owner;		/* rank, or DDP_DEAL_NONE */
	uint32_t users;		/* other ranks that must share it */
	uint32_t asker;		/* in a search: the rank that reached it */
};

/* A rank's wish and what it got. */
struct ddp_hand {
	uint32_t class;		/* lowest rank that wants the same */
	uint32_t group;		/* lowest rank that it competes with, by way
				 * of others too */
	uint32_t got;		/* units */
	bool dealt;		/* has its CPUs */
	bool finished;		/* class leaders: nothing is left to be had */
	uint32_t lost;		/* in a search: the unit by which it was
				 * reached; DDP_DEAL_NONE: not reached */
};

struct ddp_deal {
	const struct ddp_machine *machine;
	const struct ddp_cpuset *want, *like;
	uint32_t rank_count, unit_count;
	struct ddp_unit *units;	/* [machine->cpu_count] */
	struct ddp_hand *hands;	/* [rank_count] */
	uint32_t *queue;	/* [rank_count] */
};

/* Returns true if the rank wants one of the unit's CPUs. */
bool ddp_deal_wants(const struct ddp_deal *deal, uint32_t rank,
		    const struct ddp_unit *unit);

/*
 * Deal one unit at a time to all ranks that have no CPUs yet, and let owners
 * swap units until they have what they like, in neighbouring units. Sets got of
 * each hand and owner of each unit.
 */
void ddp_deal_units(struct ddp_deal *deal);

#endif
