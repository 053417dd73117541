/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of ranks. */
#include <criterion/criterion.h>

#include <string.h>

#include "layout/ranks.h"

Test(ranks, are_found_in_a_list)
{
	static const char list[] = "7,0,3-5,12-12";
	static const uint32_t in[] = { 0, 3, 4, 5, 7, 12 };
	uint32_t rank, next = 0;

	cr_assert_eq(ddp_ranks_check("x", list, 13, NULL), 0);
	for (rank = 0; rank < 20; rank++) {
		bool wanted = next < sizeof(in) / sizeof(in[0]) &&
			in[next] == rank;

		cr_expect_eq(ddp_ranks_has(list, rank), wanted, "%u", rank);
		next += wanted;
	}
}

Test(ranks, of_any_number_are_taken)
{
	cr_expect_eq(ddp_ranks_check("x", "0-4294967295", 0, NULL), 0);
	cr_expect(ddp_ranks_has("0-4294967295", 1000000));
	cr_expect_eq(ddp_ranks_check("x", "4294967296", 0, NULL), -1);
}

Test(ranks, that_a_world_lacks_are_refused)
{
	struct ddp_error error;

	cr_expect_eq(ddp_ranks_check("x", "0,3", 4, &error), 0);
	cr_expect_eq(ddp_ranks_check("--ddp-show", "0,2-4", 4, &error), -1);
	cr_expect_str_eq(error.text, "--ddp-show=0,2-4: the ranks of this step "
			 "are 0 to 3, and those from 4 on are left out");
}

Test(ranks, that_are_no_numbers_are_refused)
{
	static const char *const lists[] = {
		"", ",", "a", "0,", "0,,1", "-1", "1-", "3-2", "1 ", "0x1", "*",
	};
	struct ddp_error error;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		cr_expect_eq(ddp_ranks_check("x", lists[i], 0, &error), -1,
			     "%s", lists[i]);
		cr_expect(strstr(error.text, "expected ranks, as in 0,3-5"));
	}
}
