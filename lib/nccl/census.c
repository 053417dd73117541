/* SPDX-License-Identifier: BSD-3-Clause */
/* What all cards together say, and the sentence that refuses them. */
#include "nccl/census.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "layout/error.h"

#define NAMED 3		/* ranks that a sentence names; others it counts */

struct list {
	uint32_t count;
	uint32_t ranks[NAMED];
};

struct user {
	unsigned char gpu[16];
	uint32_t where;		/* node of a bus id, 0 of a UUID */
	uint32_t kind, team, rank;
};

struct ddp_census {
	struct ddp_places places;
	uint32_t added, user_count;
	struct list strays;		/* that published no card */
	struct list others;		/* that ask for something else */
	struct list failed;
	struct list skewed;		/* whose NCCL is another */
	bool failed_alike;
	uint32_t nccl_rank;		/* the lowest that has one */
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
			      "no memory to compare %u ranks", size);
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

static void list_add(struct list *list, uint32_t rank)
{
	if (list->count < NAMED)
		list->ranks[list->count] = rank;
	list->count++;
}

static bool asks_alike(const struct ddp_card *a, const struct ddp_card *b)
{
	return a->asked == b->asked && a->share_gpu == b->share_gpu &&
		a->ranks_per_root == b->ranks_per_root;
}

static void failure_add(struct ddp_census *census, const struct ddp_card *card)
{
	if (census->failed.count == 0)
		census->failure = *card;
	else if (strcmp(census->failure.text, card->text) != 0)
		census->failed_alike = false;
	list_add(&census->failed, census->added);
}

static void version_add(struct ddp_census *census, uint32_t version)
{
	if (census->nccl == 0) {
		census->nccl = version;
		census->nccl_rank = census->added;
	} else if (version != census->nccl) {
		if (census->skewed.count == 0)
			census->nccl_other = version;
		list_add(&census->skewed, census->added);
	}
}

static void user_add(struct ddp_census *census, uint32_t team,
		     const struct ddp_card *card)
{
	struct user *user = &census->users[census->user_count++];

	memcpy(user->gpu, card->gpu, sizeof(user->gpu));
	user->kind = card->gpu_kind;
	user->team = team;
	user->rank = census->added;
	user->where = 0;
	if (card->gpu_kind == DDP_GPU_ID_BUS)
		user->where =
			census->places.node(census->places.of, census->added);
}

void ddp_census_add(struct ddp_census *census, uint32_t team,
		    const struct ddp_card *card)
{
	if (!card) {
		list_add(&census->strays, census->added++);
		return;
	}
	if (census->added == 0)
		census->first = *card;
	if (!asks_alike(card, &census->first)) {
		if (census->others.count == 0)
			census->other = *card;
		list_add(&census->others, census->added);
	}
	if (card->code != DDP_ERROR_NONE)
		failure_add(census, card);
	if (card->nccl != 0)
		version_add(census, card->nccl);
	if (card->gpu_kind != DDP_GPU_ID_NONE)
		user_add(census, team, card);
	census->added++;
}

/* ---- sentences */

static void say(char *text, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(char *text, size_t room, const char *format, ...)
{
	size_t size = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + size, room - size, format, args);
	va_end(args);
}

struct names {
	char text[768];		/* three ranks with hosts of 64 and more */
};

static const char *host(const struct ddp_census *census, uint32_t rank)
{
	const char *name = census->places.host(census->places.of, rank);

	return name ? name : "an unknown host";
}

/* "rank 1 on n1, rank 3 on n2 and 5 other ranks", or "all 4 ranks" */
static const char *names(const struct ddp_census *census,
			 const struct list *list, struct names *names)
{
	uint32_t i, named = list->count < NAMED ? list->count : NAMED;
	uint32_t more = list->count - named;
	char *text = names->text;
	const char *before = "";

	text[0] = '\0';
	if (list->count == census->added && list->count > 1) {
		say(text, sizeof(names->text), "all %u ranks", list->count);
		return text;
	}
	for (i = 0; i < named; i++) {
		say(text, sizeof(names->text), "%srank %u on %s", before,
		    list->ranks[i], host(census, list->ranks[i]));
		before = i + 2 == named && more == 0 ? " and " : ", ";
	}
	if (more > 0)
		say(text, sizeof(names->text), " and %u other%s", more,
		    more > 1 ? " ranks" : "");
	return text;
}

static const char *groups(uint32_t asked)
{
	static const char *const texts[] = {
		"no group", "world", "node", "world and node", "cross",
		"world and cross", "node and cross", "world, node and cross",
	};

	return asked < 8 ? texts[asked] : "a split";
}

static int refuse_others(const struct ddp_census *census,
			 struct ddp_error *error)
{
	const struct ddp_card *a = &census->first, *b = &census->other;
	char want[64], had[64];
	struct names who;

	if (a->asked != b->asked) {
		snprintf(want, sizeof(want), "%s", groups(a->asked));
		snprintf(had, sizeof(had), "%s", groups(b->asked));
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
			     want, names(census, &census->others, &who), had);
}

static int refuse_failed(const struct ddp_census *census,
			 const struct ddp_card *mine, struct ddp_error *error)
{
	struct list first = { 1, { census->failed.ranks[0] } };
	struct names who;

	if (census->failed_alike)
		ddp_error_set(error, DDP_ERROR_PEER, "%s: %s",
			      names(census, &census->failed, &who),
			      census->failure.text);
	else
		ddp_error_set(error, DDP_ERROR_PEER,
			      "%s: %s (%u other ranks failed too)",
			      names(census, &first, &who),
			      census->failure.text, census->failed.count - 1);
	if (error && mine->code != DDP_ERROR_NONE) {
		error->code = mine->code;
		error->native = mine->native;
	}
	return -1;
}

static int refuse_skewed(const struct ddp_census *census,
			 struct ddp_error *error)
{
	struct names who;
	uint32_t a = census->nccl, b = census->nccl_other;

	return ddp_error_set(error, DDP_ERROR_NCCL,
			     "rank %u on %s has NCCL %u.%u.%u, but not %s "
			     "(%u.%u.%u): all ranks must load the same",
			     census->nccl_rank,
			     host(census, census->nccl_rank),
			     a / 10000, a / 100 % 100, a % 100,
			     names(census, &census->skewed, &who),
			     b / 10000, b / 100 % 100, b % 100);
}

/* ---- GPUs */

static int gpu_compare(const struct user *a, const struct user *b)
{
	if (a->team != b->team)
		return a->team < b->team ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	return memcmp(a->gpu, b->gpu, sizeof(a->gpu));
}

static int users_compare(const void *left, const void *right)
{
	const struct user *a = left, *b = right;
	int order = gpu_compare(a, b);

	if (order != 0)
		return order;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void gpu_format(const struct user *user, char *text, size_t room)
{
	const unsigned char *id = user->gpu;
	size_t i;

	text[0] = '\0';
	if (user->kind == DDP_GPU_ID_BUS) {
		say(text, room, "%.15s", (const char *)id);
		return;
	}
	say(text, room, "GPU");
	for (i = 0; i < sizeof(user->gpu); i++)
		say(text, room, i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ?
		    "-%02x" : "%02x", id[i]);
}

/* Of the GPUs with several users, the one that has the lowest rank is told. */
static int refuse_sharers(struct ddp_census *census, struct ddp_error *error)
{
	struct list sharers, told = { 0 };
	const struct user *users = census->users, *gpu = NULL;
	uint32_t i, end, shared = 0;
	struct names who;
	char text[48];

	qsort(census->users, census->user_count, sizeof(*users), users_compare);
	for (i = 0; i < census->user_count; i = end) {
		sharers = (struct list){ 0 };
		for (end = i; end < census->user_count &&
		     gpu_compare(&users[i], &users[end]) == 0; end++)
			list_add(&sharers, users[end].rank);
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
	gpu_format(gpu, text, sizeof(text));
	ddp_error_set(error, DDP_ERROR_ARGUMENT,
		      "%s use the same GPU, %s: each rank must choose its own, "
		      "as by cudaSetDevice(local rank)",
		      names(census, &told, &who), text);
	if (error && shared > 1)
		say(error->text, sizeof(error->text),
		    " (%u more GPU%s shared)", shared - 1,
		    shared > 2 ? "s are" : " is");
	return -1;
}

int ddp_census_check(struct ddp_census *census, const struct ddp_card *mine,
		     struct ddp_error *error)
{
	struct names who;

	if (census->strays.count > 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s made another call, or has another "
				     "version of libddp: all ranks must make "
				     "the same calls in the same order",
				     names(census, &census->strays, &who));
	/* first, as one that failed early may not know what it asks for */
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
