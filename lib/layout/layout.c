/* SPDX-License-Identifier: BSD-3-Clause */
/* Places every rank of a step on a host. */
#define _GNU_SOURCE
#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/scan.h"

/* The place of a rank. */
struct seat {
	uint32_t host;
	uint32_t local_rank;
};

struct node {
	uint32_t ranks;		/* that are on it so far; in the end all */
	uint32_t node_rank;
	const char *name;	/* in the layout's pool of names */
};

struct ddp_layout {
	uint32_t world_size;
	uint32_t node_count;
	struct seat *seats;	/* [world_size] */
	struct node *nodes;	/* [hosts], as listed */
	char *names;
};

int ddp_distribution_parse(const char *text,
			   enum ddp_distribution *distribution,
			   struct ddp_error *error)
{
	static const struct {
		const char *word;
		enum ddp_distribution distribution;
	} words[] = {
		{ "", DDP_DISTRIBUTION_BLOCK },
		{ "*", DDP_DISTRIBUTION_BLOCK },
		{ "pack", DDP_DISTRIBUTION_BLOCK },
		{ "nopack", DDP_DISTRIBUTION_BLOCK },
		{ "block", DDP_DISTRIBUTION_BLOCK },
		{ "cyclic", DDP_DISTRIBUTION_CYCLIC },
		{ "plane", DDP_DISTRIBUTION_PLANE },
		{ "arbitrary", DDP_DISTRIBUTION_ARBITRARY },
		{ "hostfile", DDP_DISTRIBUTION_ARBITRARY },
	};
	size_t length, i;

	if (!text)
		text = "";
	length = strcspn(text, ":,=");
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) == length &&
		    strncasecmp(words[i].word, text, length) == 0) {
			*distribution = words[i].distribution;
			return 0;
		}
	}
	return ddp_scan_error(error, "distribution", text, text,
			      "block, cyclic, plane or arbitrary");
}

/* Put the next rank on a host. Ranks come in order, so counting is enough. */
static void place_rank(struct ddp_layout *layout, uint32_t rank, uint32_t host)
{
	struct node *node = &layout->nodes[host];

	if (node->ranks == 0)
		node->node_rank = layout->node_count++;
	layout->seats[rank].host = host;
	layout->seats[rank].local_rank = node->ranks++;
}

/* Put each rank on the host that the caller lists for it. */
static int place_listed(struct ddp_layout *layout,
			const struct ddp_layout_params *params,
			struct ddp_error *error)
{
	size_t host_count = ddp_hostlist_count(params->hosts);
	uint32_t rank, host;

	for (rank = 0; rank < layout->world_size; rank++) {
		host = params->rank_hosts[rank];
		if (host >= host_count)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"rank %u is mapped to host %u, but there are "
				"only %zu hosts", rank, host, host_count);
		if (layout->nodes[host].ranks == params->tasks[host])
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the mapping puts more ranks on %s than its "
				"%u tasks", layout->nodes[host].name,
				params->tasks[host]);
		place_rank(layout, rank, host);
	}
	return 0;
}

/*
 * Give each host that is not full yet chunk ranks, host by host, until all are
 * full. A full host leaves the list of open ones, so that the time follows the
 * number of ranks and not that of hosts times rounds.
 */
static int deal_ranks(struct ddp_layout *layout, const uint32_t *tasks,
		      uint32_t host_count, uint32_t chunk)
{
	uint32_t *open, open_count = 0, kept, rank = 0, host, i, n;

	open = malloc(host_count * sizeof(*open));
	if (!open)
		return -1;
	for (host = 0; host < host_count; host++)
		if (tasks[host] > 0)
			open[open_count++] = host;
	while (open_count > 0) {
		kept = 0;
		for (i = 0; i < open_count; i++) {
			host = open[i];
			for (n = 0; n < chunk &&
			     layout->nodes[host].ranks < tasks[host]; n++)
				place_rank(layout, rank++, host);
			if (layout->nodes[host].ranks < tasks[host])
				open[kept++] = host;
		}
		open_count = kept;
	}
	free(open);
	return 0;
}

/* Returns how many ranks to deal at a time; 0, with error set, if nothing says
 * so. */
static uint32_t find_chunk(const struct ddp_layout_params *params,
			   struct ddp_error *error)
{
	switch (params->distribution) {
	case DDP_DISTRIBUTION_BLOCK:
		return UINT32_MAX;
	case DDP_DISTRIBUTION_CYCLIC:
		return 1;
	case DDP_DISTRIBUTION_PLANE:
		if (params->plane_size == 0)
			ddp_error_set(error, DDP_ERROR_ARGUMENT,
				      "the plane distribution needs a plane "
				      "size of at least 1");
		return params->plane_size;
	case DDP_DISTRIBUTION_ARBITRARY:
		break;
	}
	ddp_error_set(error, DDP_ERROR_ARGUMENT,
		      "the arbitrary distribution does not say where ranks "
		      "run: the host of each rank must be given");
	return 0;
}

/* Copy the names into one pool. */
static int copy_names(struct ddp_layout *layout,
		      const struct ddp_hostlist *hosts)
{
	size_t count = ddp_hostlist_count(hosts), size = 0, i;
	char *out;

	for (i = 0; i < count; i++)
		size += strlen(ddp_hostlist_get(hosts, i)) + 1;
	layout->names = malloc(size);
	if (!layout->names)
		return -1;
	out = layout->names;
	for (i = 0; i < count; i++) {
		layout->nodes[i].name = out;
		out = stpcpy(out, ddp_hostlist_get(hosts, i)) + 1;
	}
	return 0;
}

/* The sum of all tasks; 0, with error set, if it is out of bounds. */
static uint32_t sum_tasks(const uint32_t *tasks, size_t host_count,
			  struct ddp_error *error)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < host_count; i++)
		sum += tasks[i];
	if (sum == 0 || sum > DDP_RANK_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "a job step has 1 to %d ranks, not %llu",
			      DDP_RANK_MAX, (unsigned long long)sum);
		return 0;
	}
	return (uint32_t)sum;
}

struct ddp_layout *ddp_layout_create(const struct ddp_layout_params *params,
				     struct ddp_error *error)
{
	uint32_t host_count = (uint32_t)ddp_hostlist_count(params->hosts);
	struct ddp_layout *layout;
	uint32_t world_size, chunk = 0;

	world_size = sum_tasks(params->tasks, host_count, error);
	if (world_size == 0)
		return NULL;
	if (!params->rank_hosts) {
		chunk = find_chunk(params, error);
		if (chunk == 0)
			return NULL;
	}
	layout = calloc(1, sizeof(*layout));
	if (!layout)
		goto no_memory;
	layout->world_size = world_size;
	layout->seats = malloc(world_size * sizeof(*layout->seats));
	layout->nodes = calloc(host_count, sizeof(*layout->nodes));
	if (!layout->seats || !layout->nodes ||
	    copy_names(layout, params->hosts))
		goto no_memory;
	if (params->rank_hosts) {
		if (place_listed(layout, params, error))
			goto failed;
	} else if (deal_ranks(layout, params->tasks, host_count, chunk)) {
		goto no_memory;
	}
	return layout;

no_memory:
	ddp_error_set(error, DDP_ERROR_SYSTEM,
		      "out of memory for a layout of %u ranks", world_size);
failed:
	ddp_layout_destroy(layout);
	return NULL;
}

void ddp_layout_destroy(struct ddp_layout *layout)
{
	if (!layout)
		return;
	free(layout->names);
	free(layout->nodes);
	free(layout->seats);
	free(layout);
}

uint32_t ddp_layout_world_size(const struct ddp_layout *layout)
{
	return layout->world_size;
}

uint32_t ddp_layout_node_count(const struct ddp_layout *layout)
{
	return layout->node_count;
}

uint32_t ddp_layout_ranks_per_node(const struct ddp_layout *layout)
{
	uint32_t count = layout->nodes[layout->seats[0].host].ranks, rank;

	for (rank = 1; rank < layout->world_size; rank++)
		if (layout->nodes[layout->seats[rank].host].ranks != count)
			return 0;
	return count;
}

const char *ddp_layout_master(const struct ddp_layout *layout)
{
	return layout->nodes[layout->seats[0].host].name;
}

int ddp_layout_get(const struct ddp_layout *layout, uint32_t rank,
		   struct ddp_rank *out, struct ddp_error *error)
{
	const struct seat *seat;
	const struct node *node;

	if (rank >= layout->world_size)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "rank %u is not in a world of %u ranks",
				     rank, layout->world_size);
	seat = &layout->seats[rank];
	node = &layout->nodes[seat->host];
	out->rank = rank;
	out->local_rank = seat->local_rank;
	out->local_world_size = node->ranks;
	out->node_rank = node->node_rank;
	out->host_index = seat->host;
	out->host = node->name;
	return 0;
}
