/* SPDX-License-Identifier: BSD-3-Clause */
/* How many tasks each node has. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
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
