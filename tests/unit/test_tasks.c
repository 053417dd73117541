/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of tasks: how many each node has, PMI process mappings, lists of ranks. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"

struct tasks_row {
	char text[48];
	size_t nodes;
	uint32_t tasks[8];
};

ParameterizedTestParameters(tasks, parses)
{
	static struct tasks_row table[] = {
		{ "1", 1, { 1 } },
		{ "4", 1, { 4 } },
		{ "2(x3),1", 4, { 2, 2, 2, 1 } },
		{ "1,2(x2),3", 4, { 1, 2, 2, 3 } },
		{ "2(x1)", 1, { 2 } },
		{ "0,3", 2, { 0, 3 } },
		{ "0(x2),1", 3, { 0, 0, 1 } },
		{ "1,1,1,1,1,1,1,1", 8, { 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ "16777216", 1, { 16777216 } },
		{ "8388608(x2)", 2, { 8388608, 8388608 } },
	};

	return cr_make_param_array(struct tasks_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct tasks_row *row, tasks, parses)
{
	struct ddp_error error = { 0 };
	uint32_t tasks[8];

	cr_assert_eq(ddp_tasks_parse(row->text, row->nodes, tasks, &error), 0,
		     "%s", error.text);
	cr_expect_arr_eq(tasks, row->tasks, row->nodes * sizeof(tasks[0]));
}

struct refusal {
	char text[48];
	size_t nodes;
	int byte;
	char expected[48];
};

ParameterizedTestParameters(tasks, refuses)
{
	static struct refusal table[] = {
		{ "", 1, 1, "a number of tasks" },
		{ "1", 0, 1, "some nodes" },
		{ "0", 1, 1, "at least one task" },
		{ "0(x3)", 3, 1, "at least one task" },
		{ "-1", 1, 1, "a number of tasks" },
		{ " 1", 1, 1, "a number of tasks" },
		{ "2x3", 1, 2, "the end after 1 nodes" },
		{ "2(3)", 3, 3, "'x'" },
		{ "2(", 3, 3, "'x'" },
		{ "2(x", 3, 4, "a number of nodes" },
		{ "2(x)", 3, 4, "a number of nodes" },
		{ "2(x0)", 3, 4, "a number of nodes" },
		{ "2(x3", 3, 5, "')'" },
		{ "2(x3]", 3, 5, "')'" },
		{ "2(x4)", 3, 4, "from 1 to 3" },
		{ "1,2(x3)", 3, 6, "from 1 to 2" },
		{ "2(x99999999999999999)", 3, 4, "from 1 to 3" },
		{ "2(x2)", 3, 6, "the tasks of 1 more" },
		{ "1,1", 3, 4, "the tasks of 1 more" },
		{ "1,1,", 3, 5, "a number of tasks" },
		{ "1,,1", 3, 3, "a number of tasks" },
		{ "1,1", 1, 2, "the end after 1 nodes" },
		{ "1,", 1, 2, "the end after 1 nodes" },
		{ "16777217", 1, 1, "from 0 to 16777216" },
		{ "16777216,1", 2, 10, "at most 16777216 tasks" },
		{ "8388609(x2)", 2, 1, "at most 16777216 tasks" },
	};

	return cr_make_param_array(struct refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct refusal *row, tasks, refuses)
{
	struct ddp_error error = { 0 };
	uint32_t tasks[8];
	char byte[32];

	snprintf(byte, sizeof(byte), ", byte %d: ", row->byte);
	cr_expect_eq(ddp_tasks_parse(row->text, row->nodes, tasks, &error), -1);
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, byte), "%s", error.text);
	cr_expect_not_null(strstr(error.text, row->expected), "%s",
			   error.text);
	cr_expect_eq(ddp_tasks_parse(row->text, row->nodes, tasks, NULL), -1);
}

Test(tasks, null_is_an_error)
{
	uint32_t tasks;

	cr_expect_eq(ddp_tasks_parse(NULL, 1, &tasks, NULL), -1);
}

/* ---- PMI process mappings */

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

struct bad_mapping {
	char text[64];
	size_t hosts, ranks;
	int byte;		/* 0: the error has no position */
	char expected[48];
};

ParameterizedTestParameters(mapping, refuses)
{
	static struct bad_mapping table[] = {
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

	return cr_make_param_array(struct bad_mapping, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct bad_mapping *row, mapping, refuses)
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

/* ---- lists of ranks */

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
