/* SPDX-License-Identifier: BSD-3-Clause */
/* Unique ids, kept as the cards bring them. */
#include <criterion/criterion.h>

#include <string.h>

#include "nccl/setup.h"

/* A card with three ids of group 1, for these roots, of bytes 11, 12, 13. */
static struct ddp_card card(uint32_t a, uint32_t b, uint32_t c)
{
	struct ddp_card made = { .id_count = 3 };
	const uint32_t roots[] = { a, b, c };
	int i;

	for (i = 0; i < 3; i++) {
		made.ids[i].group = 1;
		made.ids[i].root = roots[i];
		memset(made.ids[i].bytes, 11 + i, DDP_ID_SIZE);
	}
	return made;
}

/* Of group 1 rank 4 is the root of blocks 0 and 1, rank 5 of block 2. */
Test(setup, counts_an_id_once)
{
	uint32_t roots[] = { 4, 4, 5 };
	ncclUniqueId ids[4] = { 0 };
	struct ddp_setup setup = { .team_count = 1 };
	struct ddp_team *team = &setup.teams[0];
	struct ddp_card other;

	team->group = 1;
	team->roster.root_count = 3;
	team->roster.roots = roots;
	team->ids = ids;
	other = card(0, 0, 0);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	cr_expect_eq(ids[0].internal[127], 11);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	/* ids for another's block, and for blocks that do not exist */
	other = card(2, 3, UINT32_MAX);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	/* an id of another group, and an id of zeros */
	other = card(1, 1, 0);
	other.ids[0].group = 2;
	memset(other.ids[1].bytes, 0, DDP_ID_SIZE);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	other = card(2, 1, 2);
	ddp_setup_keep_ids(&setup, 5, &other);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 3);
	cr_expect_eq(ids[2].internal[0], 11);
	cr_expect_eq(ids[1].internal[0], 12);
	cr_expect_eq(ids[3].internal[0], 0);
}
