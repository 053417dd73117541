/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes how many tasks a node has, how ranks are distributed, and the layout
 * that follows. The input is a byte for the number of nodes, one for the plane
 * size, then a line each with SLURM_DISTRIBUTION and
 * SLURM_STEP_TASKS_PER_NODE.
 */
#include "fuzz.h"
#include "fuzz_layout.h"
#include "layout/tasks.h"

enum { NODES = 12, RANKS_MAX = 1000 };	/* more would only be slow */

/* Returns the sum, or 0 if the text is refused. */
static uint64_t parse_tasks(const char *text, size_t nodes, uint32_t *tasks)
{
	struct ddp_error error = { 0 };
	char list[NODES * 12] = "";
	uint32_t again[NODES];
	uint64_t sum = 0;
	size_t used = 0, i;

	if (ddp_tasks_parse(text, nodes, tasks, &error)) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		return 0;
	}
	for (i = 0; i < nodes; i++) {
		sum += tasks[i];
		used += (size_t)sprintf(list + used, "%s%u", i > 0 ? "," : "",
					tasks[i]);
	}
	CHECK(sum >= 1 && sum <= DDP_RANK_MAX);
	CHECK(ddp_tasks_parse(list, nodes, again, NULL) == 0);
	CHECK(memcmp(again, tasks, nodes * sizeof(*tasks)) == 0);
	return sum;
}

static void check_layout(struct ddp_layout_params *params, size_t nodes,
			 uint64_t ranks)
{
	struct ddp_error error = { 0 };
	struct ddp_hostlist *hosts;
	struct ddp_layout *layout;
	char text[16];

	snprintf(text, sizeof(text), "n[1-%zu]", nodes);
	hosts = ddp_hostlist_create(text, NULL);
	CHECK(hosts && ddp_hostlist_count(hosts) == nodes);
	params->hosts = hosts;
	layout = ddp_layout_create(params, &error);
	if (layout) {
		CHECK(ddp_layout_world_size(layout) == ranks);
		fuzz_check_layout(layout, hosts, params->tasks);
	} else {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	}
	ddp_layout_destroy(layout);
	ddp_hostlist_destroy(hosts);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_layout_params params = { 0 };
	struct ddp_error error = { 0 };
	uint32_t tasks[NODES];
	char *text, *rest;
	size_t nodes;
	uint64_t ranks;

	if (size < 2)
		return 0;
	nodes = data[0] % (NODES + 1);
	params.plane_size = data[1];
	params.tasks = tasks;
	text = fuzz_text(data + 2, size - 2);
	rest = text;
	if (ddp_distribution_parse(fuzz_next_line(&rest), &params.distribution,
				   &error))
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	else
		CHECK(params.distribution <= DDP_DISTRIBUTION_ARBITRARY);
	ranks = parse_tasks(rest, nodes, tasks);
	if (ranks > 0 && ranks <= RANKS_MAX)
		check_layout(&params, nodes, ranks);
	free(text);
	return 0;
}
