/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_nccl_create and ddp_nccl_split: cards, the census, NCCL. */
#include "nccl/setup.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"
#include "nccl/comm.h"
#include "nccl/driver.h"

enum { RANKS_PER_ROOT = 128 };

void ddp_setup_fail(struct ddp_setup *setup, const struct ddp_error *why)
{
	struct ddp_card *mine = &setup->mine;

	if (mine->code != DDP_ERROR_NONE)
		return;
	mine->code = why->code;
	mine->native = why->native;
	snprintf(mine->text, sizeof(mine->text), "%.*s",
		 (int)sizeof(mine->text) - 1, why->text);
}

int ddp_setup_begin(struct ddp_setup *setup, struct ddp_job *job,
		    const struct ddp_nccl_options *options,
		    struct ddp_error *error)
{
	struct ddp_error why = { 0 };

	*setup = (struct ddp_setup){ .job = job };
	if (ddp_job_read_options(options, "ddp_nccl_options", &setup->options,
				 sizeof(setup->options),
				 offsetof(struct ddp_nccl_options, reserved),
				 &why))
		ddp_setup_fail(setup, &why);
	setup->deadline = ddp_job_deadline(job, setup->options.timeout_ms);
	setup->mine.ranks_per_root = setup->options.ranks_per_root;
	if (setup->mine.ranks_per_root == 0)
		setup->mine.ranks_per_root = RANKS_PER_ROOT;
	setup->mine.share_gpu = setup->options.share_gpu != 0;
	return ddp_job_begin(job, setup->deadline, error);
}

void ddp_setup_end(struct ddp_setup *setup)
{
	unsigned int i;

	ddp_job_end(setup->job);
	for (i = 0; i < setup->team_count; i++) {
		ddp_roster_destroy(&setup->teams[i].roster);
		free(setup->teams[i].ids);
	}
	free(setup->config);
}

/* ---- this rank */

static int check_environment(struct ddp_error *error)
{
	const char *blocking = getenv("NCCL_COMM_BLOCKING");

	if (getenv("NCCL_COMM_ID"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "NCCL_COMM_ID is set, so that all "
				     "communicators would meet at one address: "
				     "unset it");
	if (blocking && strtol(blocking, NULL, 0) == 1)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "NCCL_COMM_BLOCKING=1 is set, under which "
				     "no deadline holds: unset it");
	return 0;
}

/* Look up NCCL and the GPU. */
static void prepare(struct ddp_setup *setup)
{
	struct ddp_error why = { 0 };
	uint32_t rank = ddp_job_rank(setup->job);

	setup->config = ddp_init_copy_config(setup->options.config, &why);
	if (!setup->config || check_environment(&why) != 0)
		goto fail;
	setup->nccl = ddp_nccl_get(&why);
	if (!setup->nccl)
		goto fail;
	setup->mine.nccl = (uint32_t)setup->nccl->version;
	if (ddp_cuda_get_current(&setup->mine.gpu, &why) != 0)
		goto fail;
	if (setup->options.share_gpu == 0 ||
	    ddp_nccl_share_gpu(rank, &why) == 0)
		return;
fail:
	ddp_setup_fail(setup, &why);
}

void ddp_setup_add(struct ddp_setup *setup, uint32_t group, const char *name,
		   const uint32_t *color, const uint32_t *key)
{
	struct ddp_team *team = &setup->teams[setup->team_count];
	uint32_t ranks_per_root = setup->mine.ranks_per_root;
	struct ddp_error why = { 0 };

	setup->team_count++;
	team->group = group;
	team->name = name;
	if (!setup->nccl || !setup->nccl->init_scalable)
		ranks_per_root = DDP_ONE_ROOT;
	if (ddp_roster_create(&team->roster, ddp_job_size(setup->job), color,
			      key, ddp_job_rank(setup->job), ranks_per_root,
			      &why) != 0)
		goto fail;
	team->ids = calloc(team->roster.root_count + 1, sizeof(*team->ids));
	if (team->ids)
		return;
	ddp_error_set(&why, DDP_ERROR_SYSTEM, "out of memory for %u unique ids",
		      team->roster.root_count);
	ddp_roster_destroy(&team->roster);
fail:
	ddp_setup_fail(setup, &why);
}

/* ---- all ranks */

static const char *get_host(const void *of, uint32_t rank)
{
	return ddp_job_host(of, rank);
}

static uint32_t get_node(const void *of, uint32_t rank)
{
	return ddp_job_node_of(of, rank);
}

static struct ddp_places get_places(const struct ddp_job *job)
{
	return (struct ddp_places){ job, get_host, get_node };
}

/* DDP_ERROR_PEER means that the rank is elsewhere in its program. The census
 * has the sentence for that. */
static int read_cards(struct ddp_setup *setup, struct ddp_census *census,
		      struct ddp_error *error)
{
	unsigned char bytes[DDP_CARD_MAX];
	uint32_t rank, size = ddp_job_size(setup->job), team;
	struct ddp_error why = { 0 };
	struct ddp_card card;
	size_t length;

	for (rank = 0; rank < size; rank++) {
		team = setup->colors ? setup->colors[rank] : 0;
		if (ddp_exchange_get(setup->job, rank, bytes, sizeof(bytes),
				     &length, setup->deadline, &why) != 0) {
			length = 0;
			if (why.code != DDP_ERROR_PEER) {
				if (error)
					*error = why;
				return -1;
			}
		}
		if (ddp_card_read(&card, bytes, length) != 0) {
			ddp_census_add(census, team, NULL);
			continue;
		}
		ddp_census_add(census, team, &card);
		ddp_ids_keep(setup, rank, &card);
	}
	return 0;
}

static int exchange(struct ddp_setup *setup, struct ddp_error *error)
{
	struct ddp_places places = get_places(setup->job);
	unsigned char bytes[DDP_CARD_MAX];
	struct ddp_census *census;
	int result;

	if (ddp_exchange_put(setup->job, bytes,
			     ddp_card_write(&setup->mine, bytes),
			     setup->deadline, error) != 0)
		return -1;
	census = ddp_census_create(ddp_job_size(setup->job), &places, error);
	if (!census)
		return -1;
	result = read_cards(setup, census, error);
	if (result == 0) {
		result = ddp_census_check(census, &setup->mine, error);
		if (result != 0)
			ddp_ids_return(setup);
	}
	ddp_census_destroy(census);
	return result;
}

static int init_team(const struct ddp_setup *setup, struct ddp_team *team,
		     struct ddp_error *error)
{
	if (team->roster.size == 0)
		return 0;
	if (team->id_count != team->roster.root_count)
		return ddp_error_set(error, DDP_ERROR_PEER, "%u of the %u "
				     "unique ids of the %s communicator were "
				     "not published",
				     team->roster.root_count - team->id_count,
				     team->roster.root_count, team->name);
	return ddp_init_comm(setup->nccl, &team->roster, team->ids,
			     setup->config, team->name, setup->deadline,
			     &team->comm, error);
}

/* Ends the communicators after an error, with one deadline for all of them. */
static void end_teams(struct ddp_setup *setup)
{
	int64_t by = ddp_clock_ms() + DDP_NCCL_ABORT_MS;
	unsigned int i = setup->team_count;

	while (i-- > 0) {
		ddp_destroy_quietly(setup->nccl, setup->teams[i].comm, by);
		setup->teams[i].comm = NULL;
	}
}

int ddp_setup_finish(struct ddp_setup *setup, struct ddp_error *error)
{
	unsigned int i;

	ddp_ids_make(setup);
	if (exchange(setup, error) != 0)
		return -1;
	for (i = 0; i < setup->team_count; i++)
		if (init_team(setup, &setup->teams[i], error) != 0) {
			end_teams(setup);
			return -1;
		}
	return 0;
}

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
		prepare(&setup);
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
	struct ddp_places places = get_places(setup->job);
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
		prepare(setup);
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
