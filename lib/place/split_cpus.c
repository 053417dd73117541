/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deals out CPUs fairly: first whole cores; to ranks that get none, threads;
 * and in the end, shared threads.
 */
#include "place/steps.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- units: the next one goes to the rank that has the fewest */

#define NONE UINT32_MAX

/* A unit is dealt out: a core or a thread, neighbours in machine->cpus. */
struct unit {
	uint32_t first, end;
	uint32_t owner;		/* rank, or NONE */
	uint32_t users;		/* other ranks that must share it */
	uint32_t asker;		/* in a search: the rank that reached it */
};

/* A rank's wish and what it got. */
struct hand {
	uint32_t class;		/* lowest rank that wants the same */
	uint32_t group;		/* lowest rank that it competes with, by way
				 * of others too */
	uint32_t got;		/* units */
	bool dealt;		/* has its CPUs */
	bool finished;		/* class leaders: nothing is left to be had */
	uint32_t lost;		/* in a search: the unit by which it was
				 * reached; NONE: not reached */
};

struct deal {
	const struct ddp_machine *machine;
	const struct ddp_cpuset *want, *like;
	uint32_t rank_count, unit_count;
	struct unit *units;	/* [machine->cpu_count] */
	struct hand *hands;	/* [rank_count] */
	uint32_t *queue;	/* [rank_count] */
};

/* Returns true if the rank wants one of the unit's CPUs. */
static bool wants(const struct deal *deal, uint32_t rank,
		  const struct unit *unit)
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
static struct unit *search_unit(struct deal *deal, uint32_t rank)
{
	uint32_t head = 0, tail = 0, i;
	struct unit *unit;

	for (i = 0; i < deal->rank_count; i++)
		deal->hands[i].lost = NONE;
	for (i = 0; i < deal->unit_count; i++)
		deal->units[i].asker = NONE;
	deal->queue[tail++] = rank;
	while (head < tail) {
		rank = deal->queue[head++];
		for (i = 0; i < deal->unit_count; i++) {
			unit = &deal->units[i];
			if (unit->asker != NONE ||
			    !wants(deal, rank, unit))
				continue;
			unit->asker = rank;
			if (unit->owner == NONE)
				return unit;
			if (deal->hands[unit->owner].lost == NONE &&
			    unit->owner != deal->queue[0]) {
				deal->hands[unit->owner].lost = i;
				deal->queue[tail++] = unit->owner;
			}
		}
	}
	return NULL;
}

/* Give rank one more unit; all others keep as many as they have. */
static bool give_unit(struct deal *deal, uint32_t rank)
{
	struct unit *unit = search_unit(deal, rank);

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

static int likes(const struct deal *deal, uint32_t rank,
		 const struct unit *unit)
{
	return ddp_cpuset_has(&deal->like[rank],
			      deal->machine->cpus[unit->first].cpu);
}

/*
 * Returns how many more units would be where their owners like them if the
 * owners of two units swapped; INT_MIN if they cannot.
 */
static int get_exchange_gain(const struct deal *deal,
			     const struct unit *a, const struct unit *b)
{
	if (a->owner == NONE || b->owner == NONE ||
	    !wants(deal, b->owner, a) ||
	    !wants(deal, a->owner, b))
		return INT_MIN;
	return likes(deal, b->owner, a) + likes(deal, a->owner, b) -
	       likes(deal, a->owner, a) - likes(deal, b->owner, b);
}

static void exchange(struct unit *a, struct unit *b)
{
	uint32_t owner = a->owner;

	a->owner = b->owner;
	b->owner = owner;
}

/*
 * Swap units as long as that wins something; then so that low ranks have low
 * units, and each rank its own side by side.
 */
static void sort_units(struct deal *deal)
{
	struct unit *units = deal->units, *best;
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
 * Deal one unit at a time to all ranks that have no CPUs yet, and let owners
 * swap units until they have what they like, in neighbouring units. Sets got of
 * each hand and owner of each unit. A rank that cannot get one more now never
 * can, and neither can others that want the same.
 */
static void deal_units(struct deal *deal)
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
			struct hand *hand = &deal->hands[rank];

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

/* ---- cores, then threads */

static void cut_units(struct deal *deal, bool threads)
{
	const struct ddp_cpu *cpus = deal->machine->cpus;
	struct unit *unit = NULL;
	uint32_t i;

	deal->unit_count = 0;
	for (i = 0; i < deal->machine->cpu_count; i++) {
		if (threads || i == 0 || cpus[i].core != cpus[i - 1].core) {
			unit = &deal->units[deal->unit_count++];
			*unit = (struct unit){ .first = i,
				.owner = NONE };
		}
		unit->end = i + 1;
	}
}

static void find_classes(struct deal *deal)
{
	uint32_t rank, class;

	for (rank = 0; rank < deal->rank_count; rank++) {
		for (class = 0; class < rank; class++)
			if (deal->hands[class].class == class &&
			    ddp_cpuset_equal(&deal->want[class],
					     &deal->want[rank]))
				break;
		deal->hands[rank].class = class;
		deal->hands[rank].group = class;
	}
}

static void merge_groups(struct deal *deal, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a, rank;

	for (rank = 0; low != high && rank < deal->rank_count; rank++)
		if (deal->hands[rank].group == high)
			deal->hands[rank].group = low;
}

static void find_groups(struct deal *deal)
{
	uint32_t unit, rank, first;

	for (unit = 0; unit < deal->unit_count; unit++) {
		first = NONE;
		for (rank = 0; rank < deal->rank_count; rank++) {
			if (deal->hands[rank].class != rank ||
			    !wants(deal, rank, &deal->units[unit]))
				continue;
			if (first == NONE)
				first = rank;
			merge_groups(deal, deal->hands[first].group,
				     deal->hands[rank].group);
		}
	}
}

static void take_unit(const struct deal *deal, uint32_t rank,
		      const struct unit *unit, struct ddp_cpuset *get)
{
	uint32_t i, cpu;

	for (i = unit->first; i < unit->end; i++) {
		cpu = deal->machine->cpus[i].cpu;
		if (ddp_cpuset_has(&deal->want[rank], cpu))
			ddp_cpuset_add(get, cpu);
	}
}

/* Returns true if a rank of the group has got nothing. */
static bool group_starves(const struct deal *deal, uint32_t group)
{
	uint32_t rank;

	for (rank = 0; rank < deal->rank_count; rank++)
		if (deal->hands[rank].group == group &&
		    deal->hands[rank].got == 0)
			return true;
	return false;
}

/* Give rank the CPUs of its units; returns whether it shares one of them. */
static bool serve_rank(struct deal *deal, uint32_t rank,
		       struct ddp_cpuset *get)
{
	bool shares = false;
	uint32_t i;

	for (i = 0; i < deal->unit_count; i++) {
		if (deal->units[i].owner != rank)
			continue;
		take_unit(deal, rank, &deal->units[i], get);
		shares = shares || deal->units[i].users > 0;
	}
	return shares;
}

/* Serve the groups in which nobody starves; returns whether that was all. */
static bool serve_groups(struct deal *deal, enum ddp_split split,
			 struct ddp_cpuset *get, enum ddp_split *how)
{
	bool all = true;
	uint32_t rank;

	for (rank = 0; rank < deal->rank_count; rank++) {
		if (deal->hands[rank].dealt)
			continue;
		if (group_starves(deal, deal->hands[rank].group)) {
			all = false;
			continue;
		}
		serve_rank(deal, rank, &get[rank]);
		how[rank] = split;
	}
	for (rank = 0; rank < deal->rank_count; rank++)
		deal->hands[rank].dealt = !ddp_cpuset_empty(&get[rank]);
	return all;
}

/*
 * Serve the rest: a rank that has nothing gets the thread with the fewest
 * users.
 */
static void serve_rest(struct deal *deal, struct ddp_cpuset *get,
		       enum ddp_split *how)
{
	struct unit *unit, *best;
	uint32_t rank, i;

	for (rank = 0; rank < deal->rank_count; rank++) {
		if (deal->hands[rank].dealt || deal->hands[rank].got > 0)
			continue;
		best = NULL;
		for (i = 0; i < deal->unit_count; i++) {
			unit = &deal->units[i];
			if (wants(deal, rank, unit) &&
			    (!best || unit->users < best->users))
				best = unit;
		}
		if (best) {
			best->users++;
			take_unit(deal, rank, best, &get[rank]);
		}
		how[rank] = DDP_SPLIT_SHARED;
	}
	for (rank = 0; rank < deal->rank_count; rank++)
		if (!deal->hands[rank].dealt && deal->hands[rank].got > 0)
			how[rank] = serve_rank(deal, rank, &get[rank]) ?
				DDP_SPLIT_SHARED : DDP_SPLIT_THREADS;
}

int ddp_split(const struct ddp_machine *machine, uint32_t count,
	      const struct ddp_cpuset *want, const struct ddp_cpuset *like,
	      struct ddp_cpuset *get, enum ddp_split *how,
	      struct ddp_error *error)
{
	struct deal deal = {
		.machine = machine, .want = want, .like = like,
		.rank_count = count,
		.units = calloc(machine->cpu_count + 1, sizeof(*deal.units)),
		.hands = calloc(count + 1, sizeof(*deal.hands)),
		.queue = calloc(count + 1, sizeof(*deal.queue)),
	};
	int rc = -1;

	if (!deal.units || !deal.hands || !deal.queue) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		goto out;
	}
	memset(get, 0, count * sizeof(*get));
	cut_units(&deal, false);
	find_classes(&deal);
	find_groups(&deal);
	deal_units(&deal);
	if (!serve_groups(&deal, DDP_SPLIT_CORES, get, how)) {
		cut_units(&deal, true);
		deal_units(&deal);
		if (!serve_groups(&deal, DDP_SPLIT_THREADS, get, how))
			serve_rest(&deal, get, how);
	}
	rc = 0;
out:
	free(deal.units);
	free(deal.hands);
	free(deal.queue);
	return rc;
}
