/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU lists, and the arithmetic of sets. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <string.h>

#include "machines.h"
#include "place/machine.h"

struct cpuset_row {
	char text[32];
	uint32_t count;
	char printed[32];
};

ParameterizedTestParameters(cpuset, parses)
{
	static struct cpuset_row table[] = {
		{ "0", 1, "0" },
		{ "0-3,8", 5, "0-3,8" },
		{ "8,0-3", 5, "0-3,8" },
		{ "1,0", 2, "0-1" },
		{ "0-3,2-5", 6, "0-5" },
		{ "7-7", 1, "7" },
		{ "007", 1, "7" },
		{ "63-64", 2, "63-64" },
		{ "127,128", 2, "127-128" },
		{ "0-8191", 8192, "0-8191" },
		{ "8191", 1, "8191" },
	};

	return cr_make_param_array(struct cpuset_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct cpuset_row *row, cpuset, parses)
{
	struct ddp_error error = { 0 };
	struct ddp_cpuset set;
	char text[64];

	cr_assert_eq(ddp_cpuset_parse(row->text, &set, &error), 0, "%s",
		     error.text);
	cr_expect_eq(ddp_cpuset_count(&set), row->count);
	cr_expect_eq(ddp_cpuset_format(&set, text, sizeof(text)), 0);
	cr_expect_str_eq(text, row->printed);
}

struct cpuset_refusal {
	char text[32];
	int byte;
};

ParameterizedTestParameters(cpuset, refuses)
{
	static struct cpuset_refusal table[] = {
		{ "", 1 }, { "-1", 1 }, { " 1", 1 }, { "a", 1 }, { ",", 1 },
		{ "0x3", 2 }, { "1 ", 2 }, { "1,", 3 }, { "1,,2", 3 },
		{ "3-2", 3 }, { "1-", 3 }, { "1-2-3", 4 }, { "8192", 1 },
		{ "0-8192", 3 }, { "99999999999999999999", 1 },
	};

	return cr_make_param_array(struct cpuset_refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct cpuset_refusal *row, cpuset, refuses)
{
	struct ddp_error error = { 0 };
	struct ddp_cpuset set = { { 42 } };
	char byte[32];

	snprintf(byte, sizeof(byte), ", byte %d: ", row->byte);
	cr_expect_eq(ddp_cpuset_parse(row->text, &set, &error), -1);
	cr_expect_not_null(strstr(error.text, byte), "%s", error.text);
	cr_expect_eq(set.words[0], 42, "%s changed the set", row->text);
}

Test(cpuset, null_is_an_error)
{
	struct ddp_cpuset set;

	cr_expect_eq(ddp_cpuset_parse(NULL, &set, NULL), -1);
}

Test(cpuset, operations)
{
	struct ddp_cpuset a, b, out;

	ddp_cpuset_parse("0-9,100", &a, NULL);
	ddp_cpuset_parse("5-14,200", &b, NULL);
	ddp_cpuset_and(&out, &a, &b);
	cr_expect_eq(ddp_cpuset_count(&out), 5);
	ddp_cpuset_or(&out, &a, &b);
	cr_expect_eq(ddp_cpuset_count(&out), 17);
	ddp_cpuset_andnot(&out, &a, &b);
	cr_expect_eq(ddp_cpuset_count(&out), 6);
	cr_expect(ddp_cpuset_has(&out, 100) && !ddp_cpuset_has(&out, 5));
	cr_expect(!ddp_cpuset_meet(&out, &b));
	cr_expect(ddp_cpuset_meet(&a, &b));
	ddp_cpuset_andnot(&a, &a, &a);
	cr_expect(ddp_cpuset_empty(&a));
	cr_expect_eq(ddp_cpuset_next(&a, 0), DDP_CPU_MAX);
	cr_expect_eq(ddp_cpuset_next(&b, 15), 200);
	cr_expect_eq(ddp_cpuset_next(&b, 201), DDP_CPU_MAX);
}

/* Any set is the same after it was printed and read back. */
Test(cpuset, text_is_reversible)
{
	char text[DDP_CPUSET_TEXT_SIZE];
	struct ddp_cpuset set, read;
	uint64_t state = 1;
	uint32_t i, k;

	for (i = 0; i < 200; i++) {
		ddp_cpuset_clear(&set);
		for (k = random_below(&state, 300) + 1; k > 0; k--)
			ddp_cpuset_add(&set, random_below(&state, 1 + i * 40));
		cr_assert_eq(ddp_cpuset_format(&set, text, sizeof(text)), 0);
		cr_assert_eq(ddp_cpuset_parse(text, &read, NULL), 0);
		cr_assert(ddp_cpuset_equal(&set, &read), "%s", text);
	}
}

Test(cpuset, longest_text_fits)
{
	char text[DDP_CPUSET_TEXT_SIZE];
	struct ddp_cpuset set;
	uint32_t i;

	ddp_cpuset_clear(&set);
	for (i = 0; i < DDP_CPU_MAX; i += 2)
		ddp_cpuset_add(&set, i);
	cr_expect_eq(ddp_cpuset_format(&set, text, sizeof(text)), 0);
	cr_expect_eq(ddp_cpuset_format(&set, text, 100), -1);
	cr_expect_eq(ddp_cpuset_format(&set, text, 0), -1);
	ddp_cpuset_clear(&set);
	cr_expect_eq(ddp_cpuset_format(&set, text, 1), 0);
	cr_expect_str_eq(text, "");
}
