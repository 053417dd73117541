/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The assignment problem, solved by adding one row after the other along the
 * shortest augmenting path.
 */
#include "place/assign.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
