/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards, also with damage; what the ranks learn from all cards: who cannot take
 * part, and why; and the ranks and roots of each communicator.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/census.h"

/* ---- cards */

static struct ddp_card bare_card(void)
{
	struct ddp_card made = {
		.asked = 1, .ranks_per_root = 128, .nccl = 22809,
		.gpu.kind = DDP_GPU_ID_UUID,
	};

	memset(made.gpu.bytes, 0x10, sizeof(made.gpu.bytes));
	return made;
}

Test(card, keeps_what_is_written)
{
	struct ddp_card made = bare_card(), read;
	unsigned char bytes[DDP_CARD_MAX];
	size_t size, cut;
	uint32_t i;

	made.share_gpu = true;
	made.code = DDP_ERROR_CUDA;
	made.native = -100;
	strcpy(made.text, "no GPU");
	made.id_count = DDP_CARD_IDS;
	for (i = 0; i < DDP_CARD_IDS; i++) {
		made.ids[i].group = 1u << i;
		made.ids[i].root = 1000 + i;
		memset(made.ids[i].bytes, (int)(200 + i), DDP_ID_SIZE);
	}
	size = ddp_card_write(&made, bytes);
	cr_expect_eq(size, 44 + 6 + 3 * 136);
	memset(&read, 0xff, sizeof(read));
	cr_assert_eq(ddp_card_read(&read, bytes, size), 0);
	cr_expect_eq(read.asked, 1);
	cr_expect_eq(read.ranks_per_root, 128);
	cr_expect(read.share_gpu);
	cr_expect_eq(read.code, DDP_ERROR_CUDA);
	cr_expect_eq(read.native, -100);
	cr_expect_str_eq(read.text, "no GPU");
	cr_expect_eq(read.nccl, 22809);
	cr_expect_eq(read.gpu.kind, DDP_GPU_ID_UUID);
	cr_expect_eq(
		memcmp(read.gpu.bytes, made.gpu.bytes, sizeof(made.gpu.bytes)),
		0);
	cr_expect_eq(read.id_count, 3);
	cr_expect_eq(memcmp(read.ids, made.ids, sizeof(made.ids)), 0);
	for (cut = 0; cut < size; cut++)
		cr_assert_eq(ddp_card_read(&read, bytes, cut), -1, "%zu", cut);
	cr_expect_eq(ddp_card_read(&read, bytes, size + 1), -1);
}

/* Whatever byte is wrong, no index that is read may be out of range. */
Test(card, refuses_nonsense)
{
	struct ddp_card made = bare_card(), read;
	unsigned char bytes[DDP_CARD_MAX], bad[DDP_CARD_MAX];
	size_t size = ddp_card_write(&made, bytes), i;
	unsigned int value;

	cr_expect_eq(size, 44);
	for (i = 0; i < size; i++) {
		for (value = 0; value < 256; value++) {
			memcpy(bad, bytes, sizeof(bad));
			bad[i] = (unsigned char)value;
			if (ddp_card_read(&read, bad, size) != 0)
				continue;
			cr_assert_eq(read.id_count, 0);
			cr_assert_str_empty(read.text);
			cr_assert_leq(read.code, DDP_ERROR_CUDA);
		}
	}
	bad[0] = bytes[0] ^ 1;
	cr_expect_eq(ddp_card_read(&read, bad, size), -1);
}

/* The text's length is at byte 24. There is room for 255 bytes and a NUL. */
Test(card, has_a_text_that_fits)
{
	struct ddp_card made = bare_card(), read;
	unsigned char bytes[DDP_CARD_MAX];
	size_t size;

	memset(made.text, 'x', sizeof(made.text) - 1);
	size = ddp_card_write(&made, bytes);
	cr_assert_eq(size, 44 + 255);
	cr_expect_eq(ddp_card_read(&read, bytes, size), 0);
	cr_expect_eq(strlen(read.text), 255);
	bytes[size] = 'x';
	bytes[24] = 0;
	bytes[25] = 1;
	cr_expect_eq(ddp_card_read(&read, bytes, size + 1), -1);
}

/* ---- the census */

/* Two ranks on each of n1, n2, ... */
static const char *host(const void *of, uint32_t rank)
{
	static const char *const names[] = { "n1", "n2", "n3", "n4" };

	(void)of;
	return names[rank / 2 % 4];
}

static uint32_t node(const void *of, uint32_t rank)
{
	(void)of;
	return rank / 2;
}

static const struct ddp_places places = { NULL, host, node };

/* The card of a rank that can take part and has a GPU of its own. */
static struct ddp_card card(uint32_t rank)
{
	struct ddp_card made = {
		.asked = 1, .ranks_per_root = 128, .nccl = 22809,
		.gpu.kind = DDP_GPU_ID_UUID,
	};

	memset(made.gpu.bytes, 0x10, sizeof(made.gpu.bytes));
	made.gpu.bytes[15] = (unsigned char)rank;
	return made;
}

static void fail_card(struct ddp_card *made, enum ddp_error_code code,
		      int native, const char *text)
{
	made->code = code;
	made->native = native;
	snprintf(made->text, sizeof(made->text), "%s", text);
}

/*
 * All count ranks say the same of the cards. letters: the code that each rank
 * gets, as one letter. stray: the rank whose record is not a card.
 */
static void expect(const struct ddp_card *cards, uint32_t count,
		   uint32_t stray, const char *letters, const char *text)
{
	/* one for each of enum ddp_error_code */
	static const char letter[] = "-ASTPMNC";
	struct ddp_census *census;
	uint32_t me, rank;
	int result;

	for (me = 0; me < count; me++) {
		struct ddp_error error = { 0 };

		census = ddp_census_create(count, &places, &error);
		for (rank = 0; rank < count; rank++)
			ddp_census_add(census, 0, rank == stray ? NULL :
				       &cards[rank]);
		result = ddp_census_check(census, &cards[me], &error);
		cr_expect_eq(result, *text == '\0' ? 0 : -1);
		cr_expect_str_eq(error.text, text);
		cr_expect_eq(letter[error.code], letters[me], "rank %u", me);
		if (cards[me].code != 0 && letters[me] == letter[error.code])
			cr_expect_eq(error.native, cards[me].native);
		ddp_census_destroy(census);
	}
}

#define NOBODY UINT32_MAX

Test(census, passes_those_that_fit)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };

	expect(cards, 4, NOBODY, "----", "");
	expect(cards, 1, NOBODY, "-", "");
	/* two ranks that need neither NCCL nor a GPU */
	cards[2].nccl = cards[3].nccl = 0;
	cards[2].gpu.kind = cards[3].gpu.kind = DDP_GPU_ID_NONE;
	expect(cards, 4, NOBODY, "----", "");
}

Test(census, tells_failures)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };
	struct ddp_card all[4] = { card(0), card(1), card(2), card(3) };
	int i;

	fail_card(&cards[1], DDP_ERROR_NCCL, 3, "no NCCL: gone");
	expect(cards, 4, NOBODY, "PNPP", "rank 1 on n1: no NCCL: gone");
	fail_card(&cards[2], DDP_ERROR_NCCL, 4, "no NCCL: gone");
	expect(cards, 4, NOBODY, "PNNP",
	       "rank 1 on n1 and rank 2 on n2: no NCCL: gone");
	fail_card(&cards[3], DDP_ERROR_CUDA, 100, "no GPU");
	expect(cards, 4, NOBODY, "PNNC",
	       "rank 1 on n1: no NCCL: gone (2 other ranks failed too)");
	fail_card(&cards[0], DDP_ERROR_CUDA, 100, "no GPU");
	for (i = 0; i < 4; i++)
		fail_card(&all[i], DDP_ERROR_CUDA, 100, "no GPU");
	expect(all, 4, NOBODY, "CCCC", "all 4 ranks: no GPU");
}

Test(census, names_three_and_counts_the_rest)
{
	struct ddp_card cards[8];
	int i;

	for (i = 0; i < 8; i++)
		cards[i] = card((uint32_t)i);
	for (i = 0; i < 3; i++)
		fail_card(&cards[i], DDP_ERROR_CUDA, 1, "no GPU");
	expect(cards, 8, NOBODY, "CCCPPPPP", "rank 0 on n1, rank 1 on n1 and "
	       "rank 2 on n2: no GPU");
	fail_card(&cards[6], DDP_ERROR_CUDA, 1, "no GPU");
	expect(cards, 8, NOBODY, "CCCPPPCP", "rank 0 on n1, rank 1 on n1, "
	       "rank 2 on n2 and 1 other: no GPU");
	fail_card(&cards[7], DDP_ERROR_CUDA, 1, "no GPU");
	expect(cards, 8, NOBODY, "CCCPPPCC", "rank 0 on n1, rank 1 on n1, "
	       "rank 2 on n2 and 2 other ranks: no GPU");
}

Test(census, wants_one_call)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };

	cards[3].asked = 7;
	expect(cards, 4, NOBODY, "AAAA", "rank 0 on n1 asks for world, but "
	       "rank 3 on n2 for world, node and cross: all ranks must ask for "
	       "the same");
	cards[3].asked = 1;
	cards[1].share_gpu = true;
	expect(cards, 4, NOBODY, "AAAA", "rank 0 on n1 asks for share_gpu 0, "
	       "but rank 1 on n1 for 1: all ranks must ask for the same");
	cards[1].share_gpu = false;
	cards[2].ranks_per_root = cards[3].ranks_per_root = 4;
	expect(cards, 4, NOBODY, "AAAA", "rank 0 on n1 asks for ranks_per_root "
	       "128, but rank 2 on n2 and rank 3 on n2 for 4: all ranks must "
	       "ask for the same");
	/* a record that is not a card comes before everything else */
	expect(cards, 4, 2, "AAAA", "rank 2 on n2 made another call, or has "
	       "another version of libddp: all ranks must make the same calls "
	       "in the same order");
	expect(cards, 4, 0, "AAAA", "rank 0 on n1 made another call, or has "
	       "another version of libddp: all ranks must make the same calls "
	       "in the same order");
}

/* A rank that could not read its options seems to ask for the defaults. */
Test(census, tells_failures_before_other_wishes)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };

	cards[0].ranks_per_root = cards[1].ranks_per_root = 4;
	cards[3].ranks_per_root = 4;
	fail_card(&cards[2], DDP_ERROR_ARGUMENT, 0, "the size of the options "
		  "is not set");
	expect(cards, 4, NOBODY, "PPAP", "rank 2 on n2: the size of the "
	       "options is not set");
}

/* A message never has the escapes that another rank wrote. */
Test(census, prints_no_escapes_of_others)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };

	fail_card(&cards[3], DDP_ERROR_NCCL, 0, "no\033[31m NCCL\nsrun: "
		  "error: \xc3\xa9");
	expect(cards, 4, NOBODY, "PPPN", "rank 3 on n2: no?[31m NCCL?srun: "
	       "error: \xc3\xa9");
	cards[3] = card(3);
	cards[3].gpu.kind = cards[2].gpu.kind = DDP_GPU_ID_BUS;
	snprintf((char *)cards[2].gpu.bytes, sizeof(cards[2].gpu.bytes),
		 "0000:\0330:00.0");
	memcpy(cards[3].gpu.bytes, cards[2].gpu.bytes,
	       sizeof(cards[2].gpu.bytes));
	expect(cards, 4, NOBODY, "AAAA",
	       "rank 2 on n2 and rank 3 on n2 use "
	       "the same GPU, 0000:?0:00.0: each rank must choose its own, as "
	       "by cudaSetDevice(local rank)");
}

Test(census, wants_one_nccl)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };

	cards[0].nccl = 0;
	cards[2].nccl = cards[3].nccl = 22203;
	expect(cards, 4, NOBODY, "NNNN", "rank 1 on n1 has NCCL 2.28.9, but "
	       "not rank 2 on n2 and rank 3 on n2 (2.22.3): all ranks must "
	       "load the same");
}

Test(census, wants_a_gpu_a_rank)
{
	struct ddp_card cards[6] = { card(0), card(1), card(2), card(3),
		card(4), card(5) };
	int i;

	cards[3].gpu.bytes[15] = 2;
	expect(cards, 4, NOBODY, "AAAA", "rank 2 on n2 and rank 3 on n2 use "
	       "the same GPU, GPU-10101010-1010-1010-1010-101010101002: each "
	       "rank must choose its own, as by cudaSetDevice(local rank)");
	for (i = 0; i < 6; i++)
		cards[i].gpu.bytes[15] = (unsigned char)(9 - i % 2);
	expect(cards, 6, NOBODY, "AAAAAA", "rank 0 on n1, rank 2 on n2 and "
	       "rank 4 on n3 use the same GPU, "
	       "GPU-10101010-1010-1010-1010-101010101009 (1 more GPU is "
	       "shared): each rank must choose its own, as by "
	       "cudaSetDevice(local rank)");
	for (i = 0; i < 6; i++)
		cards[i].share_gpu = true;
	expect(cards, 6, NOBODY, "------", "");
}

Test(census, knows_a_bus_id_by_its_node)
{
	struct ddp_card cards[4] = { card(0), card(1), card(2), card(3) };
	int i;

	for (i = 0; i < 4; i++) {
		cards[i].gpu.kind = DDP_GPU_ID_BUS;
		memset(cards[i].gpu.bytes, 0, sizeof(cards[i].gpu.bytes));
		snprintf((char *)cards[i].gpu.bytes, sizeof(cards[i].gpu.bytes),
			 "0000:%02d:00.0", i % 2);
	}
	expect(cards, 4, NOBODY, "----", "");
	cards[3].gpu.bytes[6] = '0';
	expect(cards, 4, NOBODY, "AAAA", "rank 2 on n2 and rank 3 on n2 use "
	       "the same GPU, 0000:00:00.0: each rank must choose its own, as "
	       "by cudaSetDevice(local rank)");
}

Test(census, lets_teams_share)
{
	struct ddp_card cards[4] = { card(0), card(0), card(2), card(2) };
	struct ddp_error error = { 0 };
	struct ddp_census *census = ddp_census_create(4, &places, NULL);
	uint32_t rank;

	for (rank = 0; rank < 4; rank++)
		ddp_census_add(census, rank % 2, &cards[rank]);
	cr_expect_eq(ddp_census_check(census, &cards[0], &error), 0, "%s",
		     error.text);
	ddp_census_destroy(census);
	ddp_census_destroy(NULL);
}

/* A shared GPU is found exactly if some pair of ranks has the same one. */
Test(census, finds_what_pairs_show)
{
	enum { COUNT = 12 };
	struct ddp_card cards[COUNT];
	uint32_t teams[COUNT], i, k;
	struct ddp_census *census;
	int round, shared, found = 0;

	srand(99);
	for (round = 0; round < 2000; round++) {
		census = ddp_census_create(COUNT, &places, NULL);
		shared = 0;
		for (i = 0; i < COUNT; i++) {
			cards[i] = card((uint32_t)rand() % 200);
			if (rand() % 4 == 0)
				cards[i].gpu.kind = DDP_GPU_ID_BUS;
			teams[i] = (uint32_t)rand() % 2;
			for (k = 0; k < i; k++)
				shared |= teams[i] == teams[k] &&
					cards[i].gpu.kind ==
						cards[k].gpu.kind &&
					cards[i].gpu.bytes[15] ==
						cards[k].gpu.bytes[15] &&
					(cards[i].gpu.kind == DDP_GPU_ID_UUID ||
					 i / 2 == k / 2);
			ddp_census_add(census, teams[i], &cards[i]);
		}
		cr_assert_eq(ddp_census_check(census, &cards[0], NULL),
			     shared ? -1 : 0, "round %d", round);
		found += shared;
		ddp_census_destroy(census);
	}
	cr_expect_gt(found, 100);
	cr_expect_lt(found, 1900);
}

/* ---- rosters */

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
