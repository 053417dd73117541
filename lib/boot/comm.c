/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "boot/call.h"
#include "boot/job.h"

static int refuse_null(const void *job, const void *comm,
		       struct ddp_error *error)
{
	if (job != NULL && comm != NULL)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "no %s was given",
			     job == NULL ? "job" : "place for a communicator");
}

static int no_memory(struct ddp_call *call)
{
	struct ddp_error why = { 0 };

	ddp_error_set(&why, DDP_ERROR_SYSTEM, "no memory for %u ranks",
		      ddp_job_size(call->job));
	ddp_call_fail(call, &why);
	return -1;
}

/* ---- world, node and cross */

static void groups_add(struct ddp_call *call)
{
	uint32_t size = ddp_job_size(call->job), rank;
	uint32_t *node = malloc(size * sizeof(*node));
	uint32_t *local = malloc(size * sizeof(*local));

	if (node == NULL || local == NULL) {
		no_memory(call);
		goto done;
	}
	for (rank = 0; rank < size; rank++) {
		node[rank] = ddp_job_node_of(call->job, rank);
		local[rank] = ddp_job_local_rank_of(call->job, rank);
	}
	if (call->mine.asked & DDP_GROUP_WORLD)
		ddp_call_add(call, DDP_GROUP_WORLD, "world", NULL, NULL);
	if (call->mine.asked & DDP_GROUP_NODE)
		ddp_call_add(call, DDP_GROUP_NODE, "node", node, local);
	if (call->mine.asked & DDP_GROUP_CROSS)
		ddp_call_add(call, DDP_GROUP_CROSS, "cross", local, node);
done:
	free(node);
	free(local);
}

static void groups_take(const struct ddp_call *call,
			struct ddp_nccl_comms *comms)
{
	unsigned int i;

	/* The caller's may be shorter than that of a later version, so it is
	 * not cleared as a whole. */
	comms->world = comms->node = comms->cross = NULL;
	for (i = 0; i < call->team_count; i++) {
		if (call->teams[i].group == DDP_GROUP_WORLD)
			comms->world = call->teams[i].comm;
		else if (call->teams[i].group == DDP_GROUP_NODE)
			comms->node = call->teams[i].comm;
		else
			comms->cross = call->teams[i].comm;
	}
}

int ddp_nccl_create(struct ddp_job *job, unsigned int groups,
		    const struct ddp_nccl_options *options,
		    struct ddp_nccl_comms *comms, struct ddp_error *error)
{
	const unsigned int known = DDP_GROUP_WORLD | DDP_GROUP_NODE |
		DDP_GROUP_CROSS;
	struct ddp_error why = { 0 };
	struct ddp_call call;
	int result;

	if (refuse_null(job, comms, error) != 0 ||
	    ddp_call_begin(&call, job, options, error) != 0)
		return -1;
	call.mine.asked = groups & known;
	if (groups == 0 || (groups & ~known) != 0) {
		ddp_error_set(&why, DDP_ERROR_ARGUMENT, "0x%x names no groups "
			      "of enum ddp_group", groups);
		ddp_call_fail(&call, &why);
	}
	if (call.mine.code == DDP_ERROR_NONE)
		ddp_call_prepare(&call);
	if (call.mine.code == DDP_ERROR_NONE)
		groups_add(&call);
	result = ddp_call_finish(&call, error);
	if (result == 0)
		groups_take(&call, comms);
	ddp_call_end(&call);
	return result;
}

/* ---- split */

#define WISH_MAGIC 0x53504444u	/* "DDPS" */

/* What a rank publishes first. */
struct wish {
	uint32_t magic, color, key;
};

/* 0, or 1 where it is no wish; -1 where it could not be read. */
static int wish_get(struct ddp_call *call, uint32_t rank, struct wish *wish,
		    struct ddp_error *error)
{
	struct ddp_error why = { 0 };
	unsigned char bytes[DDP_CARD_MAX];
	size_t length = 0;

	if (ddp_exchange_get(call->job, rank, bytes, sizeof(bytes), &length,
			     call->deadline, &why) != 0) {
		if (error != NULL)
			*error = why;
		return why.code == DDP_ERROR_PEER ? 1 : -1;
	}
	if (length != sizeof(*wish))
		return 1;
	memcpy(wish, bytes, sizeof(*wish));
	return wish->magic != WISH_MAGIC;
}

/*
 * Learn every rank's color and key. What only this rank cannot read goes into
 * its card; where some rank is in another call, all see it, and end here: -1.
 */
static int wishes_read(struct ddp_call *call, uint32_t *colors, uint32_t *keys,
		       struct ddp_error *error)
{
	struct ddp_places places = ddp_call_places(call->job);
	struct ddp_card blank = { 0 };
	struct ddp_error why = { 0 };
	struct ddp_census *census;
	struct wish wish = { 0 };
	uint32_t rank;
	int result = 0;

	census = ddp_census_create(ddp_job_size(call->job), &places, &why);
	for (rank = 0; census != NULL && rank < ddp_job_size(call->job);
	     rank++) {
		result = wish_get(call, rank, &wish, &why);
		if (result < 0)
			break;
		ddp_census_add(census, 0, result == 0 ? &blank : NULL);
		colors[rank] = wish.color;
		keys[rank] = wish.key;
	}
	if (census == NULL || result < 0)
		ddp_call_fail(call, &why);
	result = census == NULL || result < 0 ? 0 :
		ddp_census_check(census, &blank, error);
	ddp_census_destroy(census);
	return result;
}

static int wishes_exchange(struct ddp_call *call, uint32_t color, uint32_t key,
			   uint32_t *colors, uint32_t *keys,
			   struct ddp_error *error)
{
	struct wish wish = { WISH_MAGIC, color, key };

	if (ddp_exchange_put(call->job, &wish, sizeof(wish), call->deadline,
			     error) != 0)
		return -1;
	if (colors == NULL || keys == NULL)
		no_memory(call);
	else if (wishes_read(call, colors, keys, error) != 0)
		return -1;
	if (color != DDP_COLOR_NONE && call->mine.code == DDP_ERROR_NONE)
		ddp_call_prepare(call);
	if (call->mine.code == DDP_ERROR_NONE)
		ddp_call_add(call, DDP_GROUP_SPLIT, "split", colors, keys);
	return 0;
}

int ddp_nccl_split(struct ddp_job *job, uint32_t color, uint32_t key,
		   const struct ddp_nccl_options *options, ncclComm_t *comm,
		   struct ddp_error *error)
{
	struct ddp_call call;
	uint32_t *colors, *keys;
	int result;

	if (refuse_null(job, comm, error) != 0 ||
	    ddp_call_begin(&call, job, options, error) != 0)
		return -1;
	call.mine.asked = DDP_GROUP_SPLIT;
	colors = calloc(ddp_job_size(job), sizeof(*colors));
	keys = calloc(ddp_job_size(job), sizeof(*keys));
	result = wishes_exchange(&call, color, key, colors, keys, error);
	call.colors = colors;
	if (result == 0)
		result = ddp_call_finish(&call, error);
	if (result == 0)
		*comm = call.team_count > 0 ? call.teams[0].comm : NULL;
	ddp_call_end(&call);
	free(colors);
	free(keys);
	return result;
}
