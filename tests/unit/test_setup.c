/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stddef.h>
#include <string.h>

#include "nccl/setup.h"

#define RESERVED offsetof(struct ddp_nccl_options, reserved)

/* Of the size that is said, with one byte set. */
struct options_row {
	size_t size, at;
	char text[64];		/* wanted; "": they are read */
};

static char unset[] = "the size of the options is not set";
static char later[] = "the options have one that this libddp is too old for";

ParameterizedTestParameters(setup, options)
{
	static struct options_row table[] = {
		{ 0, 200, "size" }, { sizeof(size_t) - 1, 200, "size" },
		{ sizeof(size_t), 200, "" }, { RESERVED, RESERVED, "" },
		{ sizeof(struct ddp_nccl_options), 200, "" },
		{ sizeof(struct ddp_nccl_options), RESERVED, "later" },
		{ sizeof(struct ddp_nccl_options), RESERVED + 3, "later" },
		{ 100, 99, "later" }, { 100, 100, "" },
		{ 4096, 4095, "later" }, { 4096, 8000, "" },
		{ 4097, 200, "size" }, { (size_t)1 << 40, 200, "size" },
		{ SIZE_MAX, 200, "size" },
	};

	return cr_make_param_array(struct options_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct options_row *row, setup, options)
{
	static union {
		struct ddp_nccl_options options;
		char bytes[8192];
	} given;
	struct ddp_nccl_options options;
	struct ddp_error error = { 0 };
	const char *text = strcmp(row->text, "size") == 0 ? unset : later;
	int result;

	given.options = (struct ddp_nccl_options){ .size = row->size,
		.ranks_per_root = 7, .timeout_ms = 9 };
	given.bytes[row->at] = 1;
	result = ddp_setup_options(&given.options, &options, &error);
	given.bytes[row->at] = 0;
	cr_expect_eq(result, *row->text == '\0' ? 0 : -1);
	cr_expect_str_eq(error.text, result == 0 ? "" : text);
	cr_expect_eq(options.ranks_per_root,
		     result == 0 && row->size > sizeof(size_t) ? 7 : 0);
}

Test(setup, options_have_no_padding)
{
	cr_expect_eq(sizeof(struct ddp_nccl_options),
		     RESERVED + sizeof(uint32_t));
}

Test(setup, no_options_are_the_defaults)
{
	struct ddp_nccl_options options;

	cr_expect_eq(ddp_setup_options(NULL, &options, NULL), 0);
	cr_expect_eq(options.timeout_ms, 0);
	cr_expect_null(options.config);
}

/* A card of the ids of group 1 with these roots, filled with 11, 12, ... */
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

/* Rank 4 is the root of blocks 0 and 1 of group 1, rank 5 that of block 2. */
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
	/* not its own, of no root, of none that there is */
	other = card(2, 3, UINT32_MAX);
	ddp_setup_keep_ids(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	/* nor of this group, nor an id */
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
