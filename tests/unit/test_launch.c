/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a job's ranks are, and whether a process is alone. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/launch.h"

#define RANKS 8

/* wanted: host/node rank/local rank/local size of each rank. */
static void expect_layout(struct ddp_layout *layout, const char *wanted,
			  const struct ddp_error *error)
{
	char had[512] = "";
	struct ddp_rank rank;
	size_t length = 0;
	uint32_t i;

	cr_assert(layout != NULL, "%s", error->text);
	for (i = 0; ddp_layout_get(layout, i, &rank, NULL) == 0; i++)
		length += (size_t)snprintf(had + length, sizeof(had) - length,
					   "%s%s/%u/%u/%u", i > 0 ? " " : "",
					   rank.host, rank.node_rank,
					   rank.local_rank,
					   rank.local_world_size);
	cr_expect_str_eq(had, wanted);
	ddp_layout_destroy(layout);
}

struct mapped_row {
	char nodes[32], mapping[48];
	uint32_t ranks;
	char wanted[128];	/* "": refused */
};

/*
 * The mappings are what Slurm 22.05 gives for -n3, for -m cyclic, for
 * -m arbitrary with n2 n1 n2, and for a step on n1 only.
 */
ParameterizedTestParameters(launch, mapped)
{
	static struct mapped_row table[] = {
		{ "n1,n2", "(vector,(0,1,3),(1,1,1))", 4,
		  "n1/0/0/3 n1/0/1/3 n1/0/2/3 n2/1/0/1" },
		{ "n1,n2", "(vector,(0,2,1),(0,1,2))", 4,
		  "n1/0/0/3 n2/1/0/1 n1/0/1/3 n1/0/2/3" },
		{ "n1,n2", "(vector,(1,1,1),(0,2,1))", 3,
		  "n2/0/0/2 n1/1/0/1 n2/0/1/2" },
		{ "n1", "(vector,(0,1,1))", 1, "n1/0/0/1" },
		{ "n[1-3]", "(vector,(2,1,1))", 1, "n3/0/0/1" },
		{ "n1,n2", "(vector,(0,1,3),(1,1,1))", 5, "" },
		{ "n1", "(vector,(0,2,1))", 2, "" },
		{ "", "(vector,(0,1,1))", 1, "" },
		{ "n1", "", 1, "" },
	};

	return cr_make_param_array(struct mapped_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct mapped_row *row, launch, mapped)
{
	struct ddp_error error = { 0 };
	struct ddp_layout *layout = ddp_launch_place_mapped(
		row->nodes, row->mapping, row->ranks, &error);

	if (row->wanted[0] != '\0') {
		expect_layout(layout, row->wanted, &error);
	} else {
		cr_expect(layout == NULL);
		cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	}
}

struct named_row {
	char names[RANKS][8];
	uint32_t ranks;
	char wanted[128];
};

/* Nodes are numbered by their lowest rank, not by their names. */
ParameterizedTestParameters(launch, named)
{
	static struct named_row table[] = {
		{ { "a" }, 1, "a/0/0/1" },
		{ { "b", "b", "a", "a" }, 4,
		  "b/0/0/2 b/0/1/2 a/1/0/2 a/1/1/2" },
		{ { "c", "a", "b", "a", "c" }, 5,
		  "c/0/0/2 a/1/0/2 b/2/0/1 a/1/1/2 c/0/1/2" },
		{ { "n10", "n1", "n10" }, 3, "n10/0/0/2 n1/1/0/1 n10/0/1/2" },
	};

	return cr_make_param_array(struct named_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct named_row *row, launch, named)
{
	struct ddp_error error = { 0 };
	char *names[RANKS];
	uint32_t i;

	for (i = 0; i < row->ranks; i++)
		names[i] = row->names[i];
	expect_layout(ddp_launch_place_named(names, row->ranks, &error),
		      row->wanted, &error);
}

/* Such a name would be read as a list of other names. */
ParameterizedTestParameters(launch, misnamed)
{
	static struct named_row table[] = {
		{ { "a", "n1,n2" }, 2, "of rank 1 is named 'n1,n2'" },
		{ { "n[1-2]" }, 1, "of rank 0 is named 'n[1-2]'" },
		{ { "a", "a", "" }, 3, "of rank 2 is named ''" },
	};

	return cr_make_param_array(struct named_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct named_row *row, launch, misnamed)
{
	struct ddp_error error = { 0 };
	char *names[RANKS];
	uint32_t i;

	for (i = 0; i < row->ranks; i++)
		names[i] = row->names[i];
	cr_expect_null(ddp_launch_place_named(names, row->ranks, &error));
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, row->wanted), "%s", error.text);
}

Test(launch, single)
{
	struct ddp_error error = { 0 };

	expect_layout(ddp_launch_place_single("me", &error), "me/0/0/1",
		      &error);
}

struct alone_row {
	char variable[24], value[12];
	int alone;
	char text[32];
};

ParameterizedTestParameters(launch, alone)
{
	static struct alone_row table[] = {
		{ "OTHER", "4", 1, "" },
		{ "SLURM_STEP_NUM_TASKS", "1", 1, "" },
		{ "SLURM_STEP_NUM_TASKS", "2", 0, "srun --mpi=pmix" },
		{ "SLURM_STEP_NUM_TASKS", "", 1, "" },
		{ "SLURM_STEP_NUM_TASKS", "2x", 1, "" },
		{ "SLURM_NTASKS", "2", 1, "" },	/* the job's */
		{ "OMPI_COMM_WORLD_SIZE", "3", 0, "mpirun" },
		{ "PMI_SIZE", "100000", 0, "one of 100000 tasks" },
	};

	return cr_make_param_array(struct alone_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct alone_row *row, launch, alone)
{
	struct ddp_error error = { 0 };

	setenv(row->variable, row->value, 1);
	cr_expect_eq(ddp_launch_is_alone(&error), row->alone ? 0 : -1);
	cr_expect_eq(error.code, row->alone ? DDP_ERROR_NONE :
		     DDP_ERROR_ARGUMENT);
	cr_expect(strstr(error.text, row->text) != NULL, "%s", error.text);
}
