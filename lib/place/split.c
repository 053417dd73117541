/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deals out CPUs fairly: first whole cores; to ranks that get none, threads;
 * and in the end, shared threads.
 */
#include "place/split.h"

#include <stdlib.h>
#include <string.h>

#include "place/deal.h"

static void cut_units(struct ddp_deal *deal, bool threads)
{
	const struct ddp_cpu *cpus = deal->machine->cpus;
	struct ddp_unit *unit = NULL;
	uint32_t i;

	deal->unit_count = 0;
	for (i = 0; i < deal->machine->cpu_count; i++) {
		if (threads || i == 0 || cpus[i].core != cpus[i - 1].core) {
			unit = &deal->units[deal->unit_count++];
			*unit = (struct ddp_unit){ .first = i,
				.owner = DDP_DEAL_NONE };
		}
		unit->end = i + 1;
	}
}

static void find_classes(struct ddp_deal *deal)
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

static void merge_groups(struct ddp_deal *deal, uint32_t a, uint32_t b)
{
	uint32_t low = a < b ? a : b, high = a < b ? b : a, rank;

	for (rank = 0; low != high && rank < deal->rank_count; rank++)
		if (deal->hands[rank].group == high)
			deal->hands[rank].group = low;
}

static void find_groups(struct ddp_deal *deal)
{
	uint32_t unit, rank, first;

	for (unit = 0; unit < deal->unit_count; unit++) {
		first = DDP_DEAL_NONE;
		for (rank = 0; rank < deal->rank_count; rank++) {
			if (deal->hands[rank].class != rank ||
			    !ddp_deal_wants(deal, rank, &deal->units[unit]))
				continue;
			if (first == DDP_DEAL_NONE)
				first = rank;
			merge_groups(deal, deal->hands[first].group,
				     deal->hands[rank].group);
		}
	}
}

static void take_unit(const struct ddp_deal *deal, uint32_t rank,
		      const struct ddp_unit *unit, struct ddp_cpuset *get)
{
	uint32_t i, cpu;

	for (i = unit->first; i < unit->end; i++) {
		cpu = deal->machine->cpus[i].cpu;
		if (ddp_cpuset_has(&deal->want[rank], cpu))
			ddp_cpuset_add(get, cpu);
	}
}

/* Returns true if a rank of the group has got nothing. */
static bool group_starves(const struct ddp_deal *deal, uint32_t group)
{
	uint32_t rank;

	for (rank = 0; rank < deal->rank_count; rank++)
		if (deal->hands[rank].group == group &&
		    deal->hands[rank].got == 0)
			return true;
	return false;
}

/* Give rank the CPUs of its units; returns whether it shares one of them. */
static bool serve_rank(struct ddp_deal *deal, uint32_t rank,
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
static bool serve_groups(struct ddp_deal *deal, enum ddp_split split,
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
static void serve_rest(struct ddp_deal *deal, struct ddp_cpuset *get,
		       enum ddp_split *how)
{
	struct ddp_unit *unit, *best;
	uint32_t rank, i;

	for (rank = 0; rank < deal->rank_count; rank++) {
		if (deal->hands[rank].dealt || deal->hands[rank].got > 0)
			continue;
		best = NULL;
		for (i = 0; i < deal->unit_count; i++) {
			unit = &deal->units[i];
			if (ddp_deal_wants(deal, rank, unit) &&
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
	struct ddp_deal deal = {
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
	ddp_deal_units(&deal);
	if (!serve_groups(&deal, DDP_SPLIT_CORES, get, how)) {
		cut_units(&deal, true);
		ddp_deal_units(&deal);
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
