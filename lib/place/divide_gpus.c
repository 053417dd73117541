/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which GPUs each rank of a node gets, and in which order it sees
 * others.
 */
#include "place/steps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- the assignment problem: rows are added along the shortest path */

#define NONE UINT32_MAX

/*
 * The prices prove that the matching is best: cost - row_price - column_price
 * is nowhere negative, and 0 where a row and a column are matched. Indexes run
 * to count inclusive: column count holds the row that is being inserted.
 */
struct problem {
	uint32_t count;
	const int64_t *cost;
	int64_t row_price[DDP_ASSIGN_MAX + 1];
	int64_t column_price[DDP_ASSIGN_MAX + 1];
	uint32_t row_of[DDP_ASSIGN_MAX + 1];
	/* The state of the search now on. */
	int64_t slack[DDP_ASSIGN_MAX + 1];
	uint32_t from[DDP_ASSIGN_MAX + 1];
	bool seen[DDP_ASSIGN_MAX + 1];
};

static int64_t get_slack(const struct problem *p, uint32_t row, uint32_t column)
{
	return p->cost[(size_t)row * p->count + column] - p->row_price[row] -
	       p->column_price[column];
}

/* Look at all columns that the row reaches; returns the nearest new one. */
static uint32_t find_nearest(struct problem *p, uint32_t from,
			     int64_t *distance)
{
	uint32_t row = p->row_of[from], column, best = p->count;
	int64_t slack;

	for (column = 0; column < p->count; column++) {
		if (p->seen[column])
			continue;
		slack = get_slack(p, row, column);
		if (slack < p->slack[column]) {
			p->slack[column] = slack;
			p->from[column] = from;
		}
		if (p->slack[column] < p->slack[best])
			best = column;
	}
	*distance = p->slack[best];
	return best;
}

/* Give row a column, moving others along the shortest path. */
static void insert_row(struct problem *p, uint32_t row)
{
	uint32_t column = p->count, i;
	int64_t distance;

	p->row_of[column] = row;
	for (i = 0; i <= p->count; i++) {
		p->slack[i] = INT64_MAX;
		p->seen[i] = false;
	}
	while (p->row_of[column] != NONE) {
		p->seen[column] = true;
		column = find_nearest(p, column, &distance);
		for (i = 0; i <= p->count; i++) {
			if (p->seen[i]) {
				p->row_price[p->row_of[i]] += distance;
				p->column_price[i] -= distance;
			} else if (i < p->count) {
				p->slack[i] -= distance;
			}
		}
	}
	for (; column != p->count; column = p->from[column])
		p->row_of[column] = p->row_of[p->from[column]];
}

/*
 * Find out which rows, from first on, could move to another column of slack 0
 * so that goal becomes free after a chain of such moves. Writes the column to
 * which each would move, or NONE.
 */
static void reach_rows(const struct problem *p, const uint32_t *columns,
		       uint32_t first, uint32_t goal, uint32_t *change)
{
	uint32_t queue[DDP_ASSIGN_MAX], head = 0, tail = 0, row;

	for (row = first; row < p->count; row++)
		change[row] = NONE;
	queue[tail++] = goal;
	while (head < tail) {
		goal = queue[head++];
		for (row = first; row < p->count; row++) {
			if (change[row] != NONE || get_slack(p, row, goal) != 0)
				continue;
			change[row] = goal;
			queue[tail++] = columns[row];
		}
	}
}

/*
 * Take the first of all best answers in the order of rows. The best answers are
 * those made of pairs of slack 0.
 */
static void make_first(const struct problem *p, uint32_t *columns)
{
	uint32_t change[DDP_ASSIGN_MAX], row_of[DDP_ASSIGN_MAX];
	uint32_t row, goal, column, mover, holder;

	memcpy(row_of, p->row_of, p->count * sizeof(*row_of));
	for (row = 0; row < p->count; row++) {
		goal = columns[row];
		reach_rows(p, columns, row + 1, goal, change);
		for (column = 0; column < goal; column++)
			if (row_of[column] > row &&
			    change[row_of[column]] != NONE &&
			    get_slack(p, row, column) == 0)
				break;
		if (column == goal)
			continue;
		for (mover = row;; mover = holder, column = change[holder]) {
			holder = row_of[column];
			columns[mover] = column;
			row_of[column] = mover;
			if (column == goal)
				break;
		}
	}
}

int ddp_assign(uint32_t count, const int64_t *cost, uint32_t *columns,
	       struct ddp_error *error)
{
	struct problem *p;
	uint32_t i;
	int rc = 0;

	if (count == 0 || count > DDP_ASSIGN_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "an assignment has 1 to %d rows, not %u",
				     DDP_ASSIGN_MAX, count);
	p = calloc(1, sizeof(*p));
	if (!p)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	p->count = count;
	p->cost = cost;
	for (i = 0; i <= count; i++)
		p->row_of[i] = NONE;
	for (i = 0; i < count; i++)
		insert_row(p, i);
	for (i = 0; i < count; i++)
		columns[p->row_of[i]] = i;
	make_first(p, columns);
	for (i = 0; i < count; i++)
		if (cost[(size_t)i * count + columns[i]] >= DDP_ASSIGN_NEVER)
			rc = ddp_error_set(error, DDP_ERROR_ARGUMENT,
					   "no assignment avoids all forbidden "
					   "pairs");
	free(p);
	return rc;
}

/* ---- GPUs */

/* More than the CPU counts of a node's ranks and GPUs can add up to. */
#define DISTANCE_COST (INT64_C(1) << 22)

/* The GPUs of which a rank gets one: neighbours in its view. */
struct lot {
	uint32_t first, count;		/* in the view */
	bool spare;			/* need not be given to any rank */
};

/* Ranks that see the same GPUs, and what they divide. */
struct party {
	uint32_t size;
	uint32_t *ranks;		/* [size], in order */
	const uint32_t *view;		/* [gpu_count] */
	uint32_t gpu_count;
	uint32_t lot_count;
	struct lot lots[DDP_ASSIGN_MAX];
	uint32_t lot_of[DDP_ASSIGN_MAX];	/* of each rank of the party */
	bool whole;			/* all ranks of the node are in it */
};

struct placing {
	const struct ddp_placement_params *params;
	const struct ddp_near *near;	/* of params->gpus */
	struct ddp_placement *placements;
	uint64_t *views;		/* [rank_count], a bit a GPU */
	struct party party;		/* the one now at work */
};

static int64_t get_lot_cost(const struct placing *p, uint32_t rank,
			    const struct lot *lot)
{
	int64_t cost = 0;
	uint32_t i, count, distance;

	for (i = lot->first; i < lot->first + lot->count; i++) {
		distance = ddp_near_distance(&p->near[p->party.view[i]],
					     &p->params->ranks[rank].mask,
					     &count);
		cost += distance * DISTANCE_COST + DDP_CPU_MAX - count;
	}
	return cost;
}

/*
 * Cut the GPUs into groups of neighbours, one for each rank; the first ones are
 * larger if need be.
 */
static void group_lots(struct party *party)
{
	uint32_t i, first = 0;

	party->lot_count = party->size;
	for (i = 0; i < party->size; i++) {
		party->lots[i] = (struct lot){ .first = first,
			.count = party->gpu_count / party->size +
				 (i < party->gpu_count % party->size) };
		first += party->lots[i].count;
	}
}

/* Make each GPU a lot as often as ranks must share it, some once more. */
static void share_lots(struct party *party)
{
	uint32_t times = party->size / party->gpu_count;
	uint32_t spare = party->size % party->gpu_count > 0;
	uint32_t gpu, i;

	party->lot_count = 0;
	for (gpu = 0; gpu < party->gpu_count; gpu++)
		for (i = 0; i < times + spare; i++)
			party->lots[party->lot_count++] = (struct lot){
				.first = gpu, .count = 1, .spare = i == times };
}

/*
 * Give each rank of the party its lot. Rows beyond the ranks take the spare
 * lots that are not needed.
 */
static int assign_lots(struct placing *p, struct ddp_error *error)
{
	struct party *party = &p->party;
	uint32_t n = party->lot_count, row, column;
	int64_t *cost = calloc((size_t)n * n, sizeof(*cost)), *at = cost;
	int rc;

	if (!cost)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (row = 0; row < n; row++)
		for (column = 0; column < n; column++, at++)
			if (row < party->size)
				*at = get_lot_cost(p, party->ranks[row],
						   &party->lots[column]);
			else if (!party->lots[column].spare)
				*at = DDP_ASSIGN_NEVER;
	rc = ddp_assign(n, cost, party->lot_of, error);
	free(cost);
	return rc;
}

static void add_visible(struct ddp_placement *placement, uint32_t gpu)
{
	uint32_t i;

	for (i = 0; i < placement->visible_count; i++)
		if (placement->visible[i] == gpu)
			return;
	placement->visible[placement->visible_count++] = gpu;
}

/* CUDA shows a process one MIG instance at most (NVIDIA's MIG User Guide). */
static bool has_instances(const struct placing *p)
{
	uint32_t i;

	for (i = 0; i < p->party.gpu_count; i++)
		if (ddp_gpus_is_instance(
				&p->params->gpus->gpus[p->party.view[i]]))
			return true;
	return false;
}

/* Find the order in which a rank of the party sees GPUs. */
static void find_order(const struct placing *p, uint32_t rank)
{
	const struct party *party = &p->party;
	struct ddp_placement *placement = &p->placements[rank];
	bool own = p->params->gpus_policy == DDP_GPUS_OWN;
	uint32_t i;

	if (!own && party->size > 1 && has_instances(p)) {
		ddp_why_add(placement, placement->gpu_count > 1 ?
			    "CUDA shows it the first of its MIG instances" :
			    "sees its own MIG instance alone");
		own = true;
	}
	if (party->whole && !own && party->size <= party->gpu_count)
		for (i = 0; i < party->size; i++)
			add_visible(placement,
				    p->placements[party->ranks[i]].gpus[0]);
	else
		for (i = 0; i < placement->gpu_count; i++)
			add_visible(placement, placement->gpus[i]);
	if (own || (party->whole && party->size > party->gpu_count))
		return;
	for (i = 0; i < party->gpu_count; i++)
		add_visible(placement, party->view[i]);
}

static void explain_gpus(const struct party *party, uint32_t member,
			 struct ddp_placement *placement)
{
	const struct lot *lot = &party->lots[party->lot_of[member]];
	uint32_t sharing = 0, i;

	if (!party->whole)
		ddp_why_add(placement, "GPUs as Slurm has cut them");
	if (party->size <= party->gpu_count) {
		if (party->size == 1 && !party->whole)
			return;
		ddp_why_add(placement, "%u of %u GPUs, %s", lot->count,
			    party->gpu_count,
			    party->lot_of[member] == member ?
			    "by local rank" : "exchanged to be near its CPUs");
		return;
	}
	for (i = 0; i < party->size; i++)
		sharing += party->lots[party->lot_of[i]].first == lot->first;
	if (sharing > 1)
		ddp_why_add(placement, "shares its GPU: %u ranks have it",
			    sharing);
	else
		ddp_why_add(placement, "a GPU to itself, where others share");
}

static int divide_party(struct placing *p, struct ddp_error *error)
{
	struct party *party = &p->party;
	struct ddp_placement *placement;
	const struct lot *lot;
	uint32_t i;

	if (party->size > party->gpu_count) {
		if (p->params->gpus_policy != DDP_GPUS_SHARE)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"%u ranks have %u GPUs; ask for --gres=gpu:%u, "
				"start %u tasks a node, or let ranks share "
				"with --ddp-gpus=share", party->size,
				party->gpu_count, party->size,
				party->gpu_count);
		if (party->size > DDP_SHARE_MAX)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"%u ranks are to share GPUs, of at most %d; "
				"start fewer tasks a node",
				party->size, DDP_SHARE_MAX);
		share_lots(party);
	} else {
		group_lots(party);
	}
	if (assign_lots(p, error))
		return -1;
	for (i = 0; i < party->size; i++) {
		placement = &p->placements[party->ranks[i]];
		lot = &party->lots[party->lot_of[i]];
		placement->gpu_count = lot->count;
		memcpy(placement->gpus, party->view + lot->first,
		       lot->count * sizeof(*placement->gpus));
		explain_gpus(party, i, placement);
	}
	for (i = 0; i < party->size; i++)
		find_order(p, party->ranks[i]);
	return 0;
}

/*
 * Returns true if another rank sees some of this one's GPUs but not the same.
 */
static bool view_overlaps(const struct placing *p, uint32_t rank)
{
	uint32_t other;

	for (other = 0; other < p->params->rank_count; other++)
		if ((p->views[other] & p->views[rank]) != 0 &&
		    p->views[other] != p->views[rank])
			return true;
	return false;
}

static void keep_view(const struct placing *p, uint32_t rank)
{
	const struct ddp_placement_rank *given = &p->params->ranks[rank];
	struct ddp_placement *placement = &p->placements[rank];
	size_t size = given->gpu_count * sizeof(*given->gpus);

	placement->gpu_count = given->gpu_count;
	placement->visible_count = given->gpu_count;
	memcpy(placement->gpus, given->gpus, size);
	memcpy(placement->visible, given->gpus, size);
	ddp_why_add(placement, "GPUs as Slurm has cut them, overlapping");
}

/* Gather the party of which rank is the first. */
static void gather_party(struct placing *p, uint32_t rank)
{
	const struct ddp_placement_rank *given = &p->params->ranks[rank];
	uint32_t other;

	p->party.size = 0;
	p->party.view = given->gpus;
	p->party.gpu_count = given->gpu_count;
	for (other = rank; other < p->params->rank_count; other++)
		if (p->views[other] == p->views[rank])
			p->party.ranks[p->party.size++] = other;
	p->party.whole = p->party.size == p->params->rank_count;
}

static bool is_first(const struct placing *p, uint32_t rank)
{
	uint32_t other;

	for (other = 0; other < rank; other++)
		if (p->views[other] == p->views[rank])
			return false;
	return true;
}

static int divide_all(struct placing *p, struct ddp_error *error)
{
	uint32_t count = p->params->rank_count, rank, i;
	bool matches = true;

	for (rank = 0; rank < count; rank++) {
		if (p->views[rank] == 0) {
			ddp_why_add(&p->placements[rank], "no GPU");
		} else if (view_overlaps(p, rank)) {
			keep_view(p, rank);
		} else if (is_first(p, rank)) {
			gather_party(p, rank);
			if (divide_party(p, error))
				return -1;
		}
	}
	for (rank = 0; rank < count; rank++) {
		struct ddp_placement *placement = &p->placements[rank];

		for (i = 0; i < placement->gpu_count; i++)
			if (!p->near[placement->gpus[i]].known)
				break;
		if (i < placement->gpu_count)
			ddp_why_add(placement, "its GPU has no PCI device "
				    "here: locality unknown");
		matches = matches && rank < placement->visible_count &&
			  placement->visible[rank] == placement->gpus[0];
	}
	for (rank = 0; rank < count; rank++)
		p->placements[rank].local_rank_is_device = matches;
	return 0;
}

static void find_views(const struct placing *p)
{
	const struct ddp_placement_params *params = p->params;
	uint32_t rank, i;

	for (rank = 0; rank < params->rank_count; rank++)
		for (i = 0; i < params->ranks[rank].gpu_count; i++)
			p->views[rank] |= UINT64_C(1)
					  << params->ranks[rank].gpus[i];
}

int ddp_divide(const struct ddp_placement_params *params,
	       const struct ddp_near *near, struct ddp_placement *placements,
	       struct ddp_error *error)
{
	struct placing p = { .params = params, .near = near,
			     .placements = placements };
	uint32_t rank;
	int rc = -1;

	if (params->gpus_policy == DDP_GPUS_OFF) {
		for (rank = 0; rank < params->rank_count; rank++)
			ddp_why_add(&placements[rank], "GPUs left alone");
		return 0;
	}
	p.views = calloc(params->rank_count, sizeof(*p.views));
	p.party.ranks = calloc(params->rank_count, sizeof(*p.party.ranks));
	if (p.views && p.party.ranks) {
		find_views(&p);
		rc = divide_all(&p, error);
	} else {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	}
	free(p.views);
	free(p.party.ranks);
	return rc;
}
