/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI process mappings. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/mapping.h"
#include "layout/tasks.h"

struct mapping_row {
	char text[64];
	size_t hosts, ranks;
	uint32_t rank_hosts[12];
};

ParameterizedTestParameters(mapping, parses)
{
	static struct mapping_row table[] = {
		{ "(vector,(0,1,1))", 1, 1, { 0 } },
		{ "(vector,(0,1,4))", 1, 4, { 0, 0, 0, 0 } },
		/* block, 2 nodes of 2 */
		{ "(vector,(0,2,2))", 2, 4, { 0, 0, 1, 1 } },
		/* cyclic, 2 nodes of 2 */
		{ "(vector,(0,2,1),(0,2,1))", 2, 4, { 0, 1, 0, 1 } },
		/* block, uneven */
		{ "(vector,(0,1,3),(1,2,1))", 3, 5, { 0, 0, 0, 1, 2 } },
		/* plane of 2 on nodes of 4, 1 and 1 */
		{ "(vector,(0,1,2),(1,2,1),(0,1,2))", 3, 6,
		  { 0, 0, 1, 2, 0, 0 } },
		/* arbitrary: the second node first */
		{ "(vector,(1,1,1),(0,1,2),(1,1,1))", 2, 4, { 1, 0, 0, 1 } },
		{ "(vector,(2,1,1),(1,1,1),(0,1,1))", 3, 3, { 2, 1, 0 } },
		/* some hosts have no rank */
		{ "(vector,(1,1,2))", 4, 2, { 1, 1 } },
	};

	return cr_make_param_array(struct mapping_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct mapping_row *row, mapping, parses)
{
	struct ddp_error error = { 0 };
	uint32_t *rank_hosts;

	rank_hosts = ddp_mapping_parse(row->text, row->hosts, row->ranks,
				       &error);
	cr_assert_not_null(rank_hosts, "%s", error.text);
	cr_expect_arr_eq(rank_hosts, row->rank_hosts,
			 row->ranks * sizeof(rank_hosts[0]), "%s", row->text);
	free(rank_hosts);
}

struct refusal {
	char text[64];
	size_t hosts, ranks;
	int byte;		/* 0: the error has no position */
	char expected[48];
};

ParameterizedTestParameters(mapping, refuses)
{
	static struct refusal table[] = {
		{ "(vector,(0,1,1))", 0, 1, 0, "not 0 and 1" },
		{ "(vector,(0,1,1))", 1, 0, 0, "not 1 and 0" },
		{ "(vector,(0,1,1))", 1, DDP_RANK_MAX + 1, 0, "16777217" },
		{ "", 1, 1, 1, "'(vector'" },
		{ "vector,(0,1,1)", 1, 1, 1, "'(vector'" },
		{ " (vector,(0,1,1))", 1, 1, 1, "'(vector'" },
		{ "(vector", 1, 1, 8, "',' and 1 more" },
		{ "(vector)", 1, 1, 8, "',' and 1 more" },
		{ "(vectors,(0,1,1))", 1, 1, 8, "','" },
		{ "(vector,", 1, 1, 9, "'('" },
		{ "(vector,0,1,1)", 1, 1, 9, "'('" },
		{ "(vector,(", 1, 1, 10, "from 0 to 0" },
		{ "(vector,(1,1,1))", 1, 1, 10, "from 0 to 0" },
		{ "(vector,(-1,1,1))", 1, 1, 10, "from 0 to 0" },
		{ "(vector,(0 ,1,1))", 1, 1, 11, "','" },
		{ "(vector,(0,0,1))", 1, 1, 12, "from 1 to 1" },
		{ "(vector,(0,2,1))", 1, 2, 12, "from 1 to 1" },
		{ "(vector,(1,2,1))", 2, 2, 12, "from 1 to 1" },
		{ "(vector,(0,1))", 1, 1, 13, "','" },
		{ "(vector,(0,1,0))", 1, 1, 14, "a number from 1" },
		{ "(vector,(0,1,99999999))", 1, 1, 14, "a number from 1" },
		{ "(vector,(0,1,1", 1, 1, 15, "')'" },
		{ "(vector,(0,1,1,1))", 1, 1, 15, "')'" },
		{ "(vector,(0,1,2))", 1, 1, 9, "at most 1 more" },
		{ "(vector,(0,1,2),(0,2,2))", 2, 5, 17, "at most 3 more" },
		{ "(vector,(0,1,1))", 1, 2, 16, "',' and 1 more" },
		{ "(vector,(0,1,1)", 1, 1, 16, "')' and the end" },
		{ "(vector,(0,1,1),(0,1,1))", 1, 1, 16, "')' and the end" },
		{ "(vector,(0,1,1)) ", 1, 1, 16, "')' and the end" },
	};

	return cr_make_param_array(struct refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct refusal *row, mapping, refuses)
{
	struct ddp_error error = { 0 };
	char byte[32] = "";

	if (row->byte > 0)
		snprintf(byte, sizeof(byte), ", byte %d: ", row->byte);
	cr_expect_null(ddp_mapping_parse(row->text, row->hosts, row->ranks,
					 &error));
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, byte), "%s", error.text);
	cr_expect_not_null(strstr(error.text, row->expected), "%s",
			   error.text);
}

Test(mapping, null_is_an_error)
{
	cr_expect_null(ddp_mapping_parse(NULL, 1, 1, NULL));
}

struct order {
	uint32_t ranks;
	uint32_t hosts[6];
	char text[64];
};

ParameterizedTestParameters(mapping, writes_the_longest_blocks)
{
	static struct order table[] = {
		{ 1, { 5 }, "(vector,(5,1,1))" },
		{ 4, { 0, 0, 1, 1 }, "(vector,(0,2,2))" },
		{ 4, { 0, 1, 0, 1 }, "(vector,(0,2,1),(0,2,1))" },
		{ 4, { 1, 0, 0, 1 }, "(vector,(1,1,1),(0,1,2),(1,1,1))" },
		{ 5, { 0, 0, 1, 1, 1 }, "(vector,(0,1,2),(1,1,3))" },
		{ 6, { 2, 2, 3, 3, 0, 0 }, "(vector,(2,2,2),(0,1,2))" },
		{ 3, { 2, 1, 0 }, "(vector,(2,1,1),(1,1,1),(0,1,1))" },
		{ 3, { 0, 2, 4 }, "(vector,(0,1,1),(2,1,1),(4,1,1))" },
	};

	return cr_make_param_array(struct order, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct order *row, mapping, writes_the_longest_blocks)
{
	char *text = ddp_mapping_format(row->hosts, row->ranks);
	uint32_t *hosts = ddp_mapping_parse(text, 6, row->ranks, NULL), i;

	cr_expect_str_eq(text, row->text);
	cr_assert_not_null(hosts);
	for (i = 0; i < row->ranks; i++)
		cr_expect_eq(hosts[i], row->hosts[i]);
	free(hosts);
	free(text);
}
