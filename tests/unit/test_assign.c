/* SPDX-License-Identifier: BSD-3-Clause */
/* The assignment problem, against brute force. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "machines.h"
#include "place/steps.h"

struct search {
	uint32_t count;
	const int64_t *cost;
	uint32_t columns[8], best[8];
	uint8_t used;
	int64_t least;
};

/* Tries all permutations in lexicographic order; keeps the first cheapest. */
static void brute_force(struct search *s, uint32_t row, int64_t sum)
{
	uint32_t column;

	if (row == s->count && sum < s->least) {
		s->least = sum;
		memcpy(s->best, s->columns, sizeof(s->best));
	}
	for (column = 0; row < s->count && column < s->count; column++) {
		if (s->used >> column & 1)
			continue;
		s->used |= (uint8_t)(1 << column);
		s->columns[row] = column;
		brute_force(s, row + 1,
			    sum + s->cost[row * s->count + column]);
		s->used &= (uint8_t)~(1 << column);
	}
}

Test(assign, is_the_first_of_the_best)
{
	/* Few different costs make many ties. */
	static const uint32_t limits[] = { 1, 2, 3, 10, 1000000 };
	uint64_t state = 7;
	int64_t cost[36];
	uint32_t columns[6], round, i;

	for (round = 0; round < 5000; round++) {
		struct search s = { .cost = cost, .least = INT64_MAX,
			.count = random_below(&state, 6) + 1 };

		for (i = 0; i < s.count * s.count; i++)
			cost[i] = random_below(&state, limits[round % 5]);
		brute_force(&s, 0, 0);
		cr_assert_eq(ddp_assign(s.count, cost, columns, NULL), 0);
		cr_assert_arr_eq(columns, s.best,
				 s.count * sizeof(columns[0]),
				 "round %u of %u rows", round, s.count);
	}
}

Test(assign, equal_costs_change_nothing)
{
	uint32_t columns[DDP_ASSIGN_MAX], i;
	int64_t *cost = calloc((size_t)DDP_ASSIGN_MAX * DDP_ASSIGN_MAX,
			       sizeof(*cost));

	for (i = 0; i < DDP_ASSIGN_MAX * DDP_ASSIGN_MAX; i++)
		cost[i] = 5;
	cr_assert_eq(ddp_assign(DDP_ASSIGN_MAX, cost, columns, NULL), 0);
	for (i = 0; i < DDP_ASSIGN_MAX; i++)
		cr_assert_eq(columns[i], i);
	free(cost);
}

Test(assign, avoids_forbidden_pairs)
{
	int64_t cost[] = {
		DDP_ASSIGN_NEVER, 9,
		9, 0,
	};
	uint32_t columns[2];

	cr_assert_eq(ddp_assign(2, cost, columns, NULL), 0);
	cr_expect_eq(columns[0], 1);
	cr_expect_eq(columns[1], 0);
	cost[2] = DDP_ASSIGN_NEVER;
	cr_expect_eq(ddp_assign(2, cost, columns, NULL), -1);
}

Test(assign, refuses_sizes)
{
	int64_t cost = 0;
	uint32_t column;

	cr_expect_eq(ddp_assign(0, &cost, &column, NULL), -1);
	cr_expect_eq(ddp_assign(DDP_ASSIGN_MAX + 1, &cost, &column, NULL), -1);
}
