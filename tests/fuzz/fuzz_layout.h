/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds of every layout, for the targets that make one. */
#ifndef DDP_FUZZ_FUZZ_LAYOUT_H
#define DDP_FUZZ_FUZZ_LAYOUT_H

#include "fuzz.h"
#include "layout/layout.h"

/*
 * Ranks are counted within each host in the order of ranks, and nodes in the
 * order of their first ranks. tasks: of each host, or NULL for any.
 */
__attribute__((unused))
static void fuzz_check_layout(const struct ddp_layout *layout,
			      const struct ddp_hostlist *hosts,
			      const uint32_t *tasks)
{
	size_t count = ddp_hostlist_count(hosts);
	uint32_t *next = calloc(count, sizeof(*next)), nodes = 0, rank;
	struct ddp_rank got;

	CHECK(next);
	for (rank = 0; rank < ddp_layout_world_size(layout); rank++) {
		CHECK(ddp_layout_get(layout, rank, &got, NULL) == 0);
		CHECK(got.rank == rank);
		CHECK(got.host_index < count);
		CHECK(strcmp(got.host, ddp_hostlist_get(hosts,
							got.host_index)) == 0);
		if (rank == 0)
			CHECK(strcmp(got.host, ddp_layout_master(layout)) == 0);
		CHECK(got.local_rank == next[got.host_index]++);
		CHECK(got.local_rank < got.local_world_size);
		if (tasks)
			CHECK(got.local_world_size == tasks[got.host_index]);
		if (got.local_rank == 0)
			CHECK(got.node_rank == nodes++);
		CHECK(got.node_rank < nodes);
	}
	CHECK(rank >= 1 && nodes == ddp_layout_node_count(layout));
	CHECK(ddp_layout_get(layout, rank, &got, NULL) < 0);
	free(next);
}

#endif
