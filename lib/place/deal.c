/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives units to ranks: the next one goes to the rank that has the fewest. To
 * free one for it, owners may move to other units.
 */
#include "place/deal.h"

#include <limits.h>
#include <stddef.h>

bool ddp_deal_wants(const struct ddp_deal *deal, uint32_t rank,
		    const struct ddp_unit *unit)
{
	uint32_t i;

	for (i = unit->first; i < unit->end; i++)
		if (ddp_cpuset_has(&deal->want[rank],
				   deal->machine->cpus[i].cpu))
			return true;
	return false;
}

/*
 * Find the nearest unit without an owner that rank can get when each owner on
 * the way moves to another unit; NULL if there is none.
 */
static struct ddp_unit *search_unit(struct ddp_deal *deal, uint32_t rank)
{
	uint32_t head = 0, tail = 0, i;
	struct ddp_unit *unit;

	for (i = 0; i < deal->rank_count; i++)
		deal->hands[i].lost = DDP_DEAL_NONE;
	for (i = 0; i < deal->unit_count; i++)
		deal->units[i].asker = DDP_DEAL_NONE;
	deal->queue[tail++] = rank;
	while (head < tail) {
		rank = deal->queue[head++];
		for (i = 0; i < deal->unit_count; i++) {
			unit = &deal->units[i];
			if (unit->asker != DDP_DEAL_NONE ||
			    !ddp_deal_wants(deal, rank, unit))
				continue;
			unit->asker = rank;
			if (unit->owner == DDP_DEAL_NONE)
				return unit;
			if (deal->hands[unit->owner].lost == DDP_DEAL_NONE &&
			    unit->owner != deal->queue[0]) {
				deal->hands[unit->owner].lost = i;
				deal->queue[tail++] = unit->owner;
			}
		}
	}
	return NULL;
}

/* Give rank one more unit; all others keep as many as they have. */
static bool give_unit(struct ddp_deal *deal, uint32_t rank)
{
	struct ddp_unit *unit = search_unit(deal, rank);

	if (!unit)
		return false;
	deal->hands[rank].got++;
	while (unit->asker != rank) {
		unit->owner = unit->asker;
		unit = &deal->units[deal->hands[unit->asker].lost];
	}
	unit->owner = rank;
	return true;
}

static int likes(const struct ddp_deal *deal, uint32_t rank,
		 const struct ddp_unit *unit)
{
	return ddp_cpuset_has(&deal->like[rank],
			      deal->machine->cpus[unit->first].cpu);
}

/*
 * Returns how many more units would be where their owners like them if the
 * owners of two units swapped; INT_MIN if they cannot.
 */
static int get_exchange_gain(const struct ddp_deal *deal,
			     const struct ddp_unit *a, const struct ddp_unit *b)
{
	if (a->owner == DDP_DEAL_NONE || b->owner == DDP_DEAL_NONE ||
	    !ddp_deal_wants(deal, b->owner, a) ||
	    !ddp_deal_wants(deal, a->owner, b))
		return INT_MIN;
	return likes(deal, b->owner, a) + likes(deal, a->owner, b) -
	       likes(deal, a->owner, a) - likes(deal, b->owner, b);
}

static void exchange(struct ddp_unit *a, struct ddp_unit *b)
{
	uint32_t owner = a->owner;

	a->owner = b->owner;
	b->owner = owner;
}

/*
 * Swap units as long as that wins something; then so that low ranks have low
 * units, and each rank its own side by side.
 */
static void sort_units(struct ddp_deal *deal)
{
	struct ddp_unit *units = deal->units, *best;
	uint32_t i, k;
	bool won;

	do {
		won = false;
		for (i = 0; i < deal->unit_count; i++)
			for (k = i + 1; k < deal->unit_count; k++)
				if (units[i].owner != units[k].owner &&
				    get_exchange_gain(deal, &units[i],
						      &units[k]) > 0) {
					exchange(&units[i], &units[k]);
					won = true;
				}
	} while (won);
	for (i = 0; i < deal->unit_count; i++) {
		best = &units[i];
		for (k = i + 1; k < deal->unit_count; k++)
			if (units[k].owner < best->owner &&
			    get_exchange_gain(deal, &units[i], &units[k]) == 0)
				best = &units[k];
		exchange(&units[i], best);
	}
}

/*
 * Deal one unit at a time to all ranks that have nothing yet. A rank that
 * cannot get one more now never can, and neither can others that want the same.
 */
void ddp_deal_units(struct ddp_deal *deal)
{
	bool given = true;
	uint32_t rank;

	for (rank = 0; rank < deal->rank_count; rank++) {
		deal->hands[rank].finished = deal->hands[rank].dealt;
		deal->hands[rank].got = 0;
	}
	while (given) {
		given = false;
		for (rank = 0; rank < deal->rank_count; rank++) {
			struct ddp_hand *hand = &deal->hands[rank];

			if (deal->hands[hand->class].finished)
				continue;
			if (give_unit(deal, rank))
				given = true;
			else
				deal->hands[hand->class].finished = true;
		}
	}
	sort_units(deal);
}
