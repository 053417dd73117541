/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks and roots of each communicator. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>
#include <string.h>

#include "nccl/roster.h"

#define RANKS 8
#define NONE UINT32_MAX

struct roster_row {
	uint32_t count, color[RANKS], key[RANKS];
	uint32_t me, per_root;
	uint32_t size, rank, roots, root[RANKS];	/* expected */
};

/*
 * Ranks 0 to 5 run on nodes 0 0 1 2 0 2. The color of the first rows is the
 * node and the key the local rank; of the next ones it is the other way round.
 */
ParameterizedTestParameters(roster, rosters)
{
	static struct roster_row table[] = {
		/* nodes */
		{ 6, { 0, 0, 1, 2, 0, 2 }, { 0, 1, 0, 0, 2, 1 }, 4, 128,
		  3, 2, 1, { 0 } },
		{ 6, { 0, 0, 1, 2, 0, 2 }, { 0, 1, 0, 0, 2, 1 }, 2, 128,
		  1, 0, 1, { 2 } },
		{ 6, { 0, 0, 1, 2, 0, 2 }, { 0, 1, 0, 0, 2, 1 }, 3, 1,
		  2, 0, 2, { 3, 5 } },
		/* across: two nodes have a local rank 1, one has a 2 */
		{ 6, { 0, 1, 0, 0, 2, 1 }, { 0, 0, 1, 2, 0, 2 }, 5, 128,
		  2, 1, 1, { 1 } },
		{ 6, { 0, 1, 0, 0, 2, 1 }, { 0, 0, 1, 2, 0, 2 }, 4, 128,
		  1, 0, 1, { 4 } },
		/* keys in the reverse order of ranks; equal keys */
		{ 4, { 7, 7, 7, 7 }, { 3, 2, 1, 0 }, 0, 2,
		  4, 3, 2, { 3, 1 } },
		{ 4, { 7, 7, 7, 7 }, { 5, 5, 1, 5 }, 1, 128,
		  4, 2, 1, { 2 } },
		/* 5 ranks in 2 blocks of 3 and 2; in 3 blocks of 2, 2, 1 */
		{ 5, { 0 }, { 0 }, 3, 3, 5, 3, 2, { 0, 3 } },
		{ 5, { 0 }, { 0 }, 0, 2, 5, 0, 3, { 0, 2, 4 } },
		{ 5, { 0 }, { 0 }, 4, 1, 5, 4, 5, { 0, 1, 2, 3, 4 } },
		{ 5, { 0 }, { 0 }, 4, DDP_ONE_ROOT, 5, 4, 1, { 0 } },
		/* a rank that does not take part; the others do */
		{ 3, { NONE, 1, 1 }, { 0 }, 0, 128, 0, 0, 0, { 0 } },
		{ 3, { NONE, 1, 1 }, { 0 }, 2, 128, 2, 1, 1, { 1 } },
		{ 1, { 0 }, { 0 }, 0, 128, 1, 0, 1, { 0 } },
	};

	return cr_make_param_array(struct roster_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct roster_row *row, roster, rosters)
{
	struct ddp_roster roster;
	uint32_t i;

	cr_assert_eq(ddp_roster_create(&roster, row->count, row->color,
				       row->key, row->me, row->per_root, NULL),
		     0);
	cr_expect_eq(roster.size, row->size);
	cr_expect_eq(roster.rank, row->rank);
	cr_assert_eq(roster.root_count, row->roots);
	for (i = 0; i < row->roots; i++)
		cr_expect_eq(roster.roots[i], row->root[i], "root %u", i);
	ddp_roster_destroy(&roster);
	cr_expect_null(roster.roots);
	ddp_roster_destroy(&roster);
}

Test(roster, world_needs_no_tables)
{
	struct ddp_roster roster;

	cr_assert_eq(
		ddp_roster_create(&roster, 129, NULL, NULL, 128, 128, NULL), 0);
	cr_expect_eq(roster.size, 129);
	cr_expect_eq(roster.rank, 128);
	cr_assert_eq(roster.root_count, 2);
	cr_expect_eq(roster.roots[0], 0);
	cr_expect_eq(roster.roots[1], 65);
	ddp_roster_destroy(&roster);
}

/*
 * How many ranks each root gets: as evenly as possible, the first roots one
 * more. NCCL's rootIdFromRank computes it; here it is counted rank by rank.
 */
Test(roster, blocks_are_those_of_nccl)
{
	uint32_t size, roots, root, rank, length[64];

	for (size = 1; size <= 64; size++) {
		for (roots = 1; roots <= size; roots++) {
			memset(length, 0, sizeof(length));
			for (rank = 0; rank < size; rank++)
				length[rank % roots]++;
			rank = 0;
			for (root = 0; root < roots; root++) {
				cr_assert_eq(
					ddp_roster_get_first(root, roots, size),
					rank, "root %u of %u, %u ranks", root,
					roots, size);
				rank += length[root];
			}
		}
	}
}

/* How many ranks of the same color come before this one. */
static uint32_t count_ranks(const uint32_t *color, const uint32_t *key,
			    uint32_t count, uint32_t me)
{
	uint32_t other, before = 0;

	for (other = 0; other < count; other++)
		before += color[other] == color[me] &&
			(key[other] < key[me] ||
			 (key[other] == key[me] && other < me));
	return before;
}

/* All ranks find the same roots, and each root finds itself. */
Test(roster, ranks_agree)
{
	enum { COUNT = 23 };
	struct ddp_roster rosters[COUNT];
	uint32_t color[COUNT], key[COUNT], per_root, round, me, other, i;

	srand(4711);
	for (round = 0; round < 500; round++) {
		per_root = 1 + (uint32_t)rand() % 6;
		for (i = 0; i < COUNT; i++) {
			color[i] = (uint32_t)rand() % 4;
			if (color[i] == 3)
				color[i] = NONE;
			key[i] = (uint32_t)rand() % 5;
		}
		for (me = 0; me < COUNT; me++)
			ddp_roster_create(&rosters[me], COUNT, color, key, me,
					  per_root, NULL);
		for (me = 0; me < COUNT; me++) {
			if (color[me] == NONE) {
				cr_expect_eq(rosters[me].size, 0);
				continue;
			}
			cr_expect_eq(rosters[me].rank,
				     count_ranks(color, key, COUNT, me));
			cr_expect_geq(rosters[me].root_count * per_root,
				      rosters[me].size);
			cr_expect_lt((rosters[me].root_count - 1) * per_root,
				     rosters[me].size);
			for (i = 0; i < rosters[me].root_count; i++) {
				other = rosters[me].roots[i];
				cr_expect_eq(color[other], color[me]);
				cr_expect_eq(rosters[other].roots[i], other);
			}
		}
		for (me = 0; me < COUNT; me++)
			ddp_roster_destroy(&rosters[me]);
	}
}
