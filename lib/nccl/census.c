/* SPDX-License-Identifier: BSD-3-Clause */
/* Count all cards, and refuse those that do not fit, with a sentence. */
#include "nccl/census.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "util/error.h"

struct user {
	struct ddp_gpu_id gpu;
	uint32_t node;		/* of a bus id; 0 of a UUID */
	uint32_t team, rank;
};

struct ddp_census {
	struct ddp_places places;
	uint32_t added, user_count;
	struct ddp_names strays;	/* published no card */
	struct ddp_names others;	/* ask for something else */
	struct ddp_names failed;
	struct ddp_names skewed;	/* have another NCCL */
	bool failed_alike;
	uint32_t nccl_rank;		/* the lowest that has NCCL */
	uint32_t nccl, nccl_other;
	struct ddp_card first;		/* rank 0's */
	struct ddp_card other;		/* of the first of others */
	struct ddp_card failure;	/* of the first of failed */
	struct user *users;		/* of GPUs, one a rank */
};

struct ddp_census *ddp_census_create(uint32_t size,
				     const struct ddp_places *places,
				     struct ddp_error *error)
{
	struct ddp_census *census = calloc(1, sizeof(*census));

	if (census)
		census->users = malloc(size * sizeof(*census->users));
	if (!census || !census->users) {
		free(census);
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for the cards of %u ranks", size);
		return NULL;
	}
	census->places = *places;
	census->failed_alike = true;
	return census;
}

void ddp_census_destroy(struct ddp_census *census)
{
	if (!census)
		return;
	free(census->users);
	free(census);
}

static bool ask_alike(const struct ddp_card *a, const struct ddp_card *b)
{
	return a->asked == b->asked && a->share_gpu == b->share_gpu &&
	       a->ranks_per_root == b->ranks_per_root;
}

static void add_failure(struct ddp_census *census, const struct ddp_card *card)
{
	if (census->failed.count == 0)
		census->failure = *card;
	else if (strcmp(census->failure.text, card->text) != 0)
		census->failed_alike = false;
	ddp_names_add(&census->failed, census->added);
}

static void add_version(struct ddp_census *census, uint32_t version)
{
	if (census->nccl == 0) {
		census->nccl = version;
		census->nccl_rank = census->added;
	} else if (version != census->nccl) {
		if (census->skewed.count == 0)
			census->nccl_other = version;
		ddp_names_add(&census->skewed, census->added);
	}
}

static void add_user(struct ddp_census *census, uint32_t team,
		     const struct ddp_card *card)
{
	struct user *user = &census->users[census->user_count++];

	user->gpu = card->gpu;
	user->team = team;
	user->rank = census->added;
	user->node = 0;
	if (card->gpu.kind == DDP_GPU_ID_BUS)
		user->node = census->places.node(census->places.of, user->rank);
}

void ddp_census_add(struct ddp_census *census, uint32_t team,
		    const struct ddp_card *card)
{
	if (!card) {
		ddp_names_add(&census->strays, census->added++);
		return;
	}
	if (census->added == 0)
		census->first = *card;
	if (!ask_alike(card, &census->first)) {
		if (census->others.count == 0)
			census->other = *card;
		ddp_names_add(&census->others, census->added);
	}
	if (card->code != DDP_ERROR_NONE)
		add_failure(census, card);
	if (card->nccl != 0)
		add_version(census, card->nccl);
	if (card->gpu.kind != DDP_GPU_ID_NONE)
		add_user(census, team, card);
	census->added++;
}

/* ---- sentences */

static const char *describe_asked(uint32_t asked)
{
	static const char *const texts[] = {
		"no group", "world", "node", "world and node", "cross",
		"world and cross", "node and cross", "world, node and cross",
	};

	return asked < 8 ? texts[asked] : "a split";
}

static const char *name(const struct ddp_census *census,
			struct ddp_names *names)
{
	return ddp_names_format(names, census->added, &census->places);
}

static const char *host(const struct ddp_census *census, uint32_t rank)
{
	return ddp_names_get_host(&census->places, rank);
}

static int refuse_others(struct ddp_census *census, struct ddp_error *error)
{
	const struct ddp_card *a = &census->first, *b = &census->other;
	char want[64], had[64];

	if (a->asked != b->asked) {
		snprintf(want, sizeof(want), "%s", describe_asked(a->asked));
		snprintf(had, sizeof(had), "%s", describe_asked(b->asked));
	} else if (a->ranks_per_root != b->ranks_per_root) {
		snprintf(want, sizeof(want), "ranks_per_root %u",
			 a->ranks_per_root);
		snprintf(had, sizeof(had), "%u", b->ranks_per_root);
	} else {
		snprintf(want, sizeof(want), "share_gpu %d", a->share_gpu);
		snprintf(had, sizeof(had), "%d", b->share_gpu);
	}
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "rank 0 on %s asks for %s, but %s for %s: all "
			     "ranks must ask for the same", host(census, 0),
			     want, name(census, &census->others), had);
}

static int refuse_failed(struct ddp_census *census, const struct ddp_card *mine,
			 struct ddp_error *error)
{
	struct ddp_names first = { 1, { census->failed.ranks[0] }, "" };

	if (census->failed_alike)
		ddp_error_set(error, DDP_ERROR_PEER, "%s: %s",
			      name(census, &census->failed),
			      census->failure.text);
	else
		ddp_error_set(error, DDP_ERROR_PEER,
			      "%s: %s (%u other ranks failed too)",
			      name(census, &first), census->failure.text,
			      census->failed.count - 1);
	if (error && mine->code != DDP_ERROR_NONE) {
		error->code = mine->code;
		error->native = mine->native;
	}
	return -1;
}

static int refuse_skewed(struct ddp_census *census, struct ddp_error *error)
{
	uint32_t a = census->nccl, b = census->nccl_other;

	return ddp_error_set(error, DDP_ERROR_NCCL,
			     "rank %u on %s has NCCL %u.%u.%u, but not %s "
			     "(%u.%u.%u): all ranks must load the same",
			     census->nccl_rank,
			     host(census, census->nccl_rank),
			     a / 10000, a / 100 % 100, a % 100,
			     name(census, &census->skewed), b / 10000,
			     b / 100 % 100, b % 100);
}

/* ---- GPUs */

static int compare_gpus(const struct user *a, const struct user *b)
{
	if (a->team != b->team)
		return a->team < b->team ? -1 : 1;
	if (a->gpu.kind != b->gpu.kind)
		return a->gpu.kind < b->gpu.kind ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return memcmp(a->gpu.bytes, b->gpu.bytes, sizeof(a->gpu.bytes));
}

static int compare_users(const void *left, const void *right)
{
	const struct user *a = left, *b = right;
	int order = compare_gpus(a, b);

	if (order != 0)
		return order;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void format_gpu(const struct ddp_gpu_id *gpu, char text[48])
{
	const unsigned char *b = gpu->bytes;

	if (gpu->kind == DDP_GPU_ID_BUS)
		snprintf(text, 48, "%.15s", (const char *)b);
	else
		snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-"
			 "%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
			 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
			 b[11], b[12], b[13], b[14], b[15]);
}

/*
 * The sentence names the shared GPU that has the lowest rank among its users.
 */
static int refuse_sharers(struct ddp_census *census, struct ddp_error *error)
{
	struct ddp_names sharers = { 0 }, told = { 0 };
	const struct user *users = census->users, *gpu = NULL;
	uint32_t i, end, shared = 0;
	char text[48], more[48] = "";

	qsort(census->users, census->user_count, sizeof(*users), compare_users);
	for (i = 0; i < census->user_count; i = end) {
		sharers.count = 0;
		for (end = i; end < census->user_count &&
		     compare_gpus(&users[i], &users[end]) == 0; end++)
			ddp_names_add(&sharers, users[end].rank);
		if (sharers.count == 1)
			continue;
		shared++;
		if (told.count == 0 || sharers.ranks[0] < told.ranks[0]) {
			told = sharers;
			gpu = &users[i];
		}
	}
	if (!gpu)
		return 0;
	format_gpu(&gpu->gpu, text);
	if (shared > 1)
		snprintf(more, sizeof(more), " (%u more GPU%s shared)",
			 shared - 1, shared > 2 ? "s are" : " is");
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "%s use the same GPU, %s%s: each rank must choose "
			     "its own, as by cudaSetDevice(local rank)",
			     name(census, &told), text, more);
}

int ddp_census_check(struct ddp_census *census, const struct ddp_card *mine,
		     struct ddp_error *error)
{
	if (census->strays.count > 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s made another call, or has another "
				     "version of libddp: all ranks must make "
				     "the same calls in the same order",
				     name(census, &census->strays));
	/* A failure comes before the other reasons: a rank that failed early
	 * may not know what it asks. */
	if (census->failed.count > 0)
		return refuse_failed(census, mine, error);
	if (census->others.count > 0)
		return refuse_others(census, error);
	if (census->skewed.count > 0)
		return refuse_skewed(census, error);
	if (census->first.share_gpu)
		return 0;
	return refuse_sharers(census, error);
}
