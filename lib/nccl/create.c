/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_nccl_create and ddp_nccl_split. */
#include <stdlib.h>
#include <string.h>

#include "job/exchange.h"
#include "job/job.h"
#include "nccl/setup.h"

static int refuse_null(const void *job, const void *comm,
		       struct ddp_error *error)
{
	if (job && comm)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "%s is NULL",
			     job ? "the place for communicators" : "job");
}

static int fail_memory(struct ddp_setup *setup)
{
	struct ddp_error why = { 0 };

	ddp_error_set(&why, DDP_ERROR_SYSTEM, "out of memory for %u ranks",
		      ddp_job_size(setup->job));
	ddp_setup_fail(setup, &why);
	return -1;
}

/* ---- world, node and cross */

static void add_groups(struct ddp_setup *setup)
{
	uint32_t size = ddp_job_size(setup->job), rank;
	uint32_t *node = malloc(size * sizeof(*node));
	uint32_t *local = malloc(size * sizeof(*local));

	if (!node || !local) {
		fail_memory(setup);
		goto done;
	}
	for (rank = 0; rank < size; rank++) {
		node[rank] = ddp_job_node_of(setup->job, rank);
		local[rank] = ddp_job_local_rank_of(setup->job, rank);
	}
	if (setup->mine.asked & DDP_GROUP_WORLD)
		ddp_setup_add(setup, DDP_GROUP_WORLD, "world", NULL, NULL);
	if (setup->mine.asked & DDP_GROUP_NODE)
		ddp_setup_add(setup, DDP_GROUP_NODE, "node", node, local);
	if (setup->mine.asked & DDP_GROUP_CROSS)
		ddp_setup_add(setup, DDP_GROUP_CROSS, "cross", local, node);
done:
	free(node);
	free(local);
}

static void take_groups(const struct ddp_setup *setup,
			struct ddp_nccl_comms *comms)
{
	unsigned int i;

	/* A caller's struct may be shorter than that of a later libddp, so do
	 * not clear it as a whole. */
	comms->world = comms->node = comms->cross = NULL;
	for (i = 0; i < setup->team_count; i++) {
		if (setup->teams[i].group == DDP_GROUP_WORLD)
			comms->world = setup->teams[i].comm;
		else if (setup->teams[i].group == DDP_GROUP_NODE)
			comms->node = setup->teams[i].comm;
		else
			comms->cross = setup->teams[i].comm;
	}
}

int ddp_nccl_create(struct ddp_job *job, unsigned int groups,
		    const struct ddp_nccl_options *options,
		    struct ddp_nccl_comms *comms, struct ddp_error *error)
{
	const unsigned int known = DDP_GROUP_WORLD | DDP_GROUP_NODE |
		DDP_GROUP_CROSS;
	struct ddp_error why = { 0 };
	struct ddp_setup setup;
	int result;

	if (refuse_null(job, comms, error) != 0 ||
	    ddp_setup_begin(&setup, job, options, error) != 0)
		return -1;
	setup.mine.asked = groups & known;
	if (groups == 0 || (groups & ~known) != 0) {
		ddp_error_set(&why, DDP_ERROR_ARGUMENT, "groups is 0x%x: set "
			      "it to an OR of enum ddp_group", groups);
		ddp_setup_fail(&setup, &why);
	}
	if (setup.mine.code == DDP_ERROR_NONE)
		ddp_setup_prepare(&setup);
	if (setup.mine.code == DDP_ERROR_NONE)
		add_groups(&setup);
	result = ddp_setup_finish(&setup, error);
	if (result == 0) {
		take_groups(&setup, comms);
		ddp_heartbeat();
	}
	ddp_setup_end(&setup);
	return result;
}

/* ---- split */

enum { WISH_MAGIC = 0x53504444 };	/* "DDPS" */

/* A rank's wish, which it publishes before its card. */
struct wish {
	uint32_t magic, color, key;
};

/* Returns 0; 1 if the record is no wish; -1 if it could not be read. */
static int get_wish(struct ddp_setup *setup, uint32_t rank, struct wish *wish,
		    struct ddp_error *error)
{
	struct ddp_error why = { 0 };
	unsigned char bytes[DDP_CARD_MAX];
	size_t length = 0;

	if (ddp_exchange_get(setup->job, rank, bytes, sizeof(bytes), &length,
			     setup->deadline, &why) != 0) {
		if (error)
			*error = why;
		return why.code == DDP_ERROR_PEER ? 1 : -1;
	}
	if (length != sizeof(*wish))
		return 1;
	memcpy(wish, bytes, sizeof(*wish));
	return wish->magic != WISH_MAGIC;
}

/*
 * Read every rank's color and key. An error of this rank alone goes into its
 * card. If some rank is in another call, all ranks see that and end here: -1.
 */
static int read_wishes(struct ddp_setup *setup, uint32_t *colors,
		       uint32_t *keys, struct ddp_error *error)
{
	struct ddp_places places = ddp_setup_get_places(setup->job);
	struct ddp_card blank = { 0 };
	struct ddp_error why = { 0 };
	struct ddp_census *census;
	struct wish wish = { 0 };
	uint32_t rank;
	int result = 0;

	census = ddp_census_create(ddp_job_size(setup->job), &places, &why);
	for (rank = 0; census && rank < ddp_job_size(setup->job);
	     rank++) {
		result = get_wish(setup, rank, &wish, &why);
		if (result < 0)
			break;
		ddp_census_add(census, 0, result == 0 ? &blank : NULL);
		colors[rank] = wish.color;
		keys[rank] = wish.key;
	}
	if (!census || result < 0)
		ddp_setup_fail(setup, &why);
	result = !census || result < 0 ? 0 :
		ddp_census_check(census, &blank, error);
	ddp_census_destroy(census);
	return result;
}

static int exchange_wishes(struct ddp_setup *setup, uint32_t color,
			   uint32_t key, uint32_t *colors, uint32_t *keys,
			   struct ddp_error *error)
{
	struct wish wish = { WISH_MAGIC, color, key };

	if (ddp_exchange_put(setup->job, &wish, sizeof(wish), setup->deadline,
			     error) != 0)
		return -1;
	if (!colors || !keys)
		fail_memory(setup);
	else if (read_wishes(setup, colors, keys, error) != 0)
		return -1;
	if (color != DDP_COLOR_NONE && setup->mine.code == DDP_ERROR_NONE)
		ddp_setup_prepare(setup);
	if (setup->mine.code == DDP_ERROR_NONE)
		ddp_setup_add(setup, DDP_GROUP_SPLIT, "split", colors, keys);
	return 0;
}

int ddp_nccl_split(struct ddp_job *job, uint32_t color, uint32_t key,
		   const struct ddp_nccl_options *options, ncclComm_t *comm,
		   struct ddp_error *error)
{
	struct ddp_setup setup;
	uint32_t *colors, *keys;
	int result;

	if (refuse_null(job, comm, error) != 0 ||
	    ddp_setup_begin(&setup, job, options, error) != 0)
		return -1;
	setup.mine.asked = DDP_GROUP_SPLIT;
	colors = calloc(ddp_job_size(job), sizeof(*colors));
	keys = calloc(ddp_job_size(job), sizeof(*keys));
	result = exchange_wishes(&setup, color, key, colors, keys, error);
	setup.colors = colors;
	if (result == 0)
		result = ddp_setup_finish(&setup, error);
	if (result == 0) {
		*comm = setup.team_count > 0 ? setup.teams[0].comm : NULL;
		ddp_heartbeat();
	}
	ddp_setup_end(&setup);
	free(colors);
	free(keys);
	return result;
}
