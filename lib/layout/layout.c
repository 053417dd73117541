/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "layout/layout.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "layout/scan.h"

struct place {
	uint32_t host;
	uint32_t local_rank;
};

struct node {
	uint32_t ranks;		/* placed on it so far, at last all */
	uint32_t node_rank;
	const char *name;	/* in the layout's pool of names */
};

struct ddp_layout {
	uint32_t world_size;
	uint32_t node_count;
	struct place *places;	/* [world_size] */
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

	if (text == NULL)
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

/* Put the next rank on a host. Ranks come in order, so all counts follow. */
static void rank_place(struct ddp_layout *layout, uint32_t rank, uint32_t host)
{
	struct node *node = &layout->nodes[host];

	if (node->ranks == 0)
		node->node_rank = layout->node_count++;
	layout->places[rank].host = host;
	layout->places[rank].local_rank = node->ranks++;
}

static int ranks_place_listed(struct ddp_layout *layout,
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
				"more than the %u tasks of %s are mapped to "
				"it", params->tasks[host],
				layout->nodes[host].name);
		rank_place(layout, rank, host);
	}
	return 0;
}

/*
 * Deal chunk ranks at a time to the hosts that still have tasks left; those
 * that are full leave the list, so that the work is one step a rank.
 */
static int ranks_place_dealt(struct ddp_layout *layout, const uint32_t *tasks,
			     uint32_t host_count, uint32_t chunk)
{
	uint32_t *open, open_count = 0, kept, rank = 0, host, i, n;

	open = malloc(host_count * sizeof(*open));
	if (open == NULL)
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
				rank_place(layout, rank++, host);
			if (layout->nodes[host].ranks < tasks[host])
				open[kept++] = host;
		}
		open_count = kept;
	}
	free(open);
	return 0;
}

/* Ranks to deal at a time; 0, with error set, where there is no rule. */
static uint32_t chunk_find(const struct ddp_layout_params *params,
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
		      "with the arbitrary distribution the host of each rank "
		      "must be given");
	return 0;
}

/* Copy the names into one pool. */
static int names_copy(struct ddp_layout *layout,
		      const struct ddp_hostlist *hosts)
{
	size_t count = ddp_hostlist_count(hosts), size = 0, i;
	char *out;

	for (i = 0; i < count; i++)
		size += strlen(ddp_hostlist_get(hosts, i)) + 1;
	layout->names = malloc(size);
	if (layout->names == NULL)
		return -1;
	out = layout->names;
	for (i = 0; i < count; i++) {
		layout->nodes[i].name = out;
		out = stpcpy(out, ddp_hostlist_get(hosts, i)) + 1;
	}
	return 0;
}

/* The tasks' sum; 0, with error set, if it is out of bounds. */
static uint32_t tasks_sum(const uint32_t *tasks, size_t host_count,
			  struct ddp_error *error)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < host_count; i++)
		sum += tasks[i];
	if (sum == 0 || sum > DDP_RANK_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "a job step has 1 to %u ranks, not %llu",
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

	world_size = tasks_sum(params->tasks, host_count, error);
	if (world_size == 0)
		return NULL;
	if (params->rank_hosts == NULL) {
		chunk = chunk_find(params, error);
		if (chunk == 0)
			return NULL;
	}
	layout = calloc(1, sizeof(*layout));
	if (layout == NULL)
		goto no_memory;
	layout->world_size = world_size;
	layout->places = malloc(world_size * sizeof(*layout->places));
	layout->nodes = calloc(host_count, sizeof(*layout->nodes));
	if (layout->places == NULL || layout->nodes == NULL ||
	    names_copy(layout, params->hosts))
		goto no_memory;
	if (params->rank_hosts != NULL) {
		if (ranks_place_listed(layout, params, error))
			goto failed;
	} else if (ranks_place_dealt(layout, params->tasks, host_count,
				     chunk)) {
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
	if (layout == NULL)
		return;
	free(layout->names);
	free(layout->nodes);
	free(layout->places);
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

const char *ddp_layout_master(const struct ddp_layout *layout)
{
	return layout->nodes[layout->places[0].host].name;
}

int ddp_layout_get(const struct ddp_layout *layout, uint32_t rank,
		   struct ddp_rank *out, struct ddp_error *error)
{
	const struct place *place;
	const struct node *node;

	if (rank >= layout->world_size)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "rank %u is not in a world of %u ranks",
				     rank, layout->world_size);
	place = &layout->places[rank];
	node = &layout->nodes[place->host];
	out->rank = rank;
	out->local_rank = place->local_rank;
	out->local_world_size = node->ranks;
	out->node_rank = node->node_rank;
	out->host_index = place->host;
	out->host = node->name;
	return 0;
}
