/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what libddp learns of a job: process mappings, node lists, the names
 * of hosts and the variables of launchers. The input is a byte for the number
 * of ranks, then a line for the mapping and one for each node.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "fuzz_layout.h"
#include "job/launch.h"
#include "layout/tasks.h"

enum { RANKS = 32, NAMES = 8 };

/* The same, read in the simplest way: blocks of nodes, each with its ranks. */
static void check_blocks(const char *mapping, const uint32_t *at,
			 uint32_t ranks)
{
	unsigned int first, count, depth, node, i;
	uint32_t rank = 0;
	int length;

	mapping += strlen("(vector");
	while (sscanf(mapping, ",(%u,%u,%u)%n", &first, &count, &depth,
		      &length) == 3) {
		for (node = first; node < first + count; node++)
			for (i = 0; i < depth; i++, rank++)
				CHECK(rank < ranks && at[rank] == node);
		mapping += length;
	}
	CHECK(rank == ranks && strcmp(mapping, ")") == 0);
}

/* A block for each rank is a mapping of the same ranks. */
static void check_mapping(const char *mapping, size_t hosts, uint32_t ranks)
{
	char text[RANKS * 16] = "(vector";
	struct ddp_error error = { 0 };
	uint32_t *at = ddp_mapping_parse(mapping, hosts, ranks, &error), *again;
	size_t used = strlen(text), rank;

	if (!at) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return;
	}
	check_blocks(mapping, at, ranks);
	for (rank = 0; rank < ranks; rank++) {
		CHECK(at[rank] < hosts);
		used += (size_t)sprintf(text + used, ",(%u,1,1)", at[rank]);
	}
	strcpy(text + used, ")");
	again = ddp_mapping_parse(text, hosts, ranks, NULL);
	CHECK(again && memcmp(at, again, ranks * sizeof(*at)) == 0);
	free(again);
	free(at);
}

/* A layout of so many ranks, or a refusal. */
static void check_answer(struct ddp_layout *layout, uint32_t ranks,
			 const struct ddp_error *error)
{
	if (layout)
		CHECK(ddp_layout_world_size(layout) == ranks);
	else
		fuzz_check_error(error, DDP_ERROR_ARGUMENT);
	ddp_layout_destroy(layout);
}

/* Ranks whose hosts have the same name are on the same node, others not. */
static void check_named(char *const *names, uint32_t ranks)
{
	struct ddp_error error = { 0 };
	struct ddp_layout *layout;
	struct ddp_rank a, b;
	uint32_t i, k;

	layout = ddp_launch_place_named(names, ranks, &error);
	for (i = 0; layout && i < ranks; i++) {
		CHECK(ddp_layout_get(layout, i, &a, NULL) == 0);
		CHECK(strcmp(a.host, names[i]) == 0);
		for (k = 0; k < i; k++) {
			CHECK(ddp_layout_get(layout, k, &b, NULL) == 0);
			CHECK((strcmp(names[i], names[k]) == 0) ==
			      (a.node_rank == b.node_rank));
		}
	}
	check_answer(layout, ranks, &error);
}

static void check_alone(const char *value)
{
	struct ddp_error error = { 0 };

	setenv("SLURM_STEP_NUM_TASKS", value, 1);
	if (ddp_launch_is_alone(&error))
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	unsetenv("SLURM_STEP_NUM_TASKS");
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_error error = { 0 };
	char *names[NAMES], *text, *rest, *mapping;
	uint32_t ranks, count = 0;
	struct ddp_layout *layout;

	if (size == 0)
		return 0;
	ranks = data[0] % RANKS;
	text = fuzz_text(data + 1, size - 1);
	rest = text;
	mapping = fuzz_next_line(&rest);
	layout = ddp_launch_place_mapped(rest, mapping, ranks, &error);
	check_answer(layout, ranks, &error);
	check_mapping(mapping, data[0] / RANKS, ranks);
	check_alone(mapping);
	do
		names[count++] = fuzz_next_line(&rest);
	while (*rest != '\0' && count < NAMES);
	check_named(names, count);
	free(text);
	return 0;
}
