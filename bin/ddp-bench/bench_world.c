/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks that have met: who they are, and what they agree on. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/ranks.h"
#include "util/clock.h"
#include "util/text.h"

/* Searches backwards, as most ranks follow another one of their node. */
void world_find_node(struct world *world, int rank)
{
	struct member *members = world->members;
	int before = rank - 1;

	while (before >= 0 &&
	       strcmp(members[before].host, members[rank].host) != 0)
		before--;
	members[rank].node = before < 0 ? world->node_count++ :
		members[before].node;
	members[rank].local_rank = before < 0 ? 0 :
		members[before].local_rank + 1;
}

int world_find_peer(const struct world *world, int node)
{
	const struct member *own = &world->members[world->rank];

	if (node == own->node)
		return -1;
	for (int rank = 0; rank < world->size; rank++)
		if (world->members[rank].node == node &&
		    world->members[rank].local_rank == own->local_rank)
			return rank;
	return -1;
}

int world_open(struct world *world, const struct backend *backend,
	       struct ddp_error *mine, struct ddp_error *error)
{
	struct member own = { 0 };
	struct tool_promise promise;
	double begin = ddp_clock_seconds();
	bool bad = tool_promise_read(&promise, mine) < 0;

	*world = (struct world){ .size = 1 };
	if (backend->open(&world->rank, &world->size, error) < 0)
		return -1;
	if (!bad)
		tool_promise_compare(&promise, backend->name, world->rank,
				     world->size, mine);
	world->open_seconds = ddp_clock_seconds() - begin;
	world->backend = backend;
	world->members = calloc((size_t)world->size, sizeof(own));
	if (!world->members)
		backend->abort("out of memory for the table of ranks");
	gethostname(own.host, sizeof(own.host) - 1);
	ddp_text_quote(own.host);
	backend->gather(&own, world->members, sizeof(own));
	for (int rank = 0; rank < world->size; rank++)
		world_find_node(world, rank);
	return 0;
}

void world_close(struct world *world)
{
	if (world->backend)
		world->backend->close();
	free(world->members);
	*world = (struct world){ .size = 1 };
}

static int node_size(const struct world *world, int node)
{
	int size = 0;

	for (int rank = 0; rank < world->size; rank++)
		size += world->members[rank].node == node;
	return size;
}

int world_pair_width(const struct world *world, int a, int b)
{
	int x = node_size(world, a), y = node_size(world, b);

	return x < y ? x : y;
}

static void exchange(void *context, const void *mine, void *all, size_t size)
{
	const struct backend *backend = context;

	backend->gather(mine, all, size);
}

static void end_ranks(void *context, const char *sentence)
{
	const struct backend *backend = context;

	backend->abort(sentence);
}

int world_agree(const struct world *world, const char *settings,
		const struct ddp_error *mine, struct ddp_error *error)
{
	const struct tool_ranks ranks = {
		.rank = world->rank, .size = world->size,
		.exchange = exchange, .abort = end_ranks,
		.context = (void *)world->backend
	};

	return tool_agree(&ranks, settings, mine, error);
}

int world_prepare(struct world *world, bool share, size_t size, void **buffer,
		  struct ddp_error *error)
{
	const struct backend *backend = world->backend;
	struct member own = world->members[world->rank];
	struct ddp_error mine = { 0 };
	double begin;

	*buffer = NULL;
	if (backend->prepare(own.local_rank, node_size(world, own.node),
			     share, own.device, sizeof(own.device),
			     &mine) == 0 && size > 0)
		*buffer = backend->reserve(size, &mine);
	ddp_text_quote(own.device);
	if (world_agree(world, "", &mine, error) < 0)
		goto failed;
	backend->gather(&own, world->members, sizeof(own));
	begin = ddp_clock_seconds();
	backend->connect(&mine);
	world->connect_seconds = ddp_clock_seconds() - begin;
	if (world_agree(world, "", &mine, error) < 0)
		goto failed;
	if (!backend->ready)
		return 0;
	backend->ready(&mine);
	if (world_agree(world, "", &mine, error) == 0)
		return 0;
failed:
	if (*buffer)
		backend->release(*buffer);
	*buffer = NULL;
	return -1;
}
