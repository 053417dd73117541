/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards as bytes; all cards counted, and those refused that do not fit, with a
 * sentence; and the rosters of communicators.
 */
#include "nccl/census.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "util/error.h"

/* ---- cards */

enum {
	CARD_MAGIC = 0x4e504444,	/* "DDPN" */
	CARD_VERSION = 1
};

/* A card begins with this, without padding; text and ids follow. */
struct head {
	uint32_t magic;
	uint16_t version;
	uint8_t code;
	uint8_t share_gpu;
	uint32_t asked;
	uint32_t ranks_per_root;
	int32_t native;
	uint32_t nccl;
	uint16_t text_size;
	uint8_t gpu_kind;
	uint8_t id_count;
	unsigned char gpu[16];
};

_Static_assert(sizeof(struct head) == 44, "a card's head has padding");
_Static_assert(sizeof(struct ddp_card_id) == DDP_ID_SIZE + 8,
	       "an id has padding");
_Static_assert(sizeof(struct head) + sizeof(((struct ddp_card *)0)->text) +
	       sizeof(((struct ddp_card *)0)->ids) <= DDP_CARD_MAX,
	       "a card is longer than DDP_CARD_MAX");

size_t ddp_card_write(const struct ddp_card *card, unsigned char *buffer)
{
	struct head head = {
		.magic = CARD_MAGIC, .version = CARD_VERSION,
		.code = (uint8_t)card->code, .share_gpu = card->share_gpu,
		.asked = card->asked, .ranks_per_root = card->ranks_per_root,
		.native = card->native, .nccl = card->nccl,
		.text_size = (uint16_t)strlen(card->text),
		.gpu_kind = (uint8_t)card->gpu.kind,
		.id_count = (uint8_t)card->id_count,
	};
	unsigned char *end = buffer + sizeof(head);
	size_t ids = card->id_count * sizeof(card->ids[0]);

	memcpy(head.gpu, card->gpu.bytes, sizeof(head.gpu));
	memcpy(buffer, &head, sizeof(head));
	memcpy(end, card->text, head.text_size);
	end += head.text_size;
	memcpy(end, card->ids, ids);
	return (size_t)(end + ids - buffer);
}

static bool is_sound(const struct head *head, size_t size)
{
	return head->magic == CARD_MAGIC && head->version == CARD_VERSION &&
		head->code <= DDP_ERROR_CUDA &&
		head->gpu_kind <= DDP_GPU_ID_BUS &&
		head->id_count <= DDP_CARD_IDS &&
		head->text_size < sizeof(((struct ddp_card *)0)->text) &&
		size == sizeof(*head) + head->text_size +
			head->id_count * sizeof(struct ddp_card_id);
}

int ddp_card_read(struct ddp_card *card, const unsigned char *bytes,
		  size_t size)
{
	struct head head;

	if (size < sizeof(head))
		return -1;
	memcpy(&head, bytes, sizeof(head));
	if (!is_sound(&head, size))
		return -1;
	card->asked = head.asked;
	card->ranks_per_root = head.ranks_per_root;
	card->share_gpu = head.share_gpu != 0;
	card->code = (enum ddp_error_code)head.code;
	card->native = head.native;
	card->nccl = head.nccl;
	card->gpu.kind = (enum ddp_gpu_id_kind)head.gpu_kind;
	card->id_count = head.id_count;
	memcpy(card->gpu.bytes, head.gpu, sizeof(card->gpu.bytes));
	bytes += sizeof(head);
	memcpy(card->text, bytes, head.text_size);
	card->text[head.text_size] = '\0';
	memcpy(card->ids, bytes + head.text_size,
	       head.id_count * sizeof(card->ids[0]));
	return 0;
}

/* ---- ranks in a sentence: a few with their hosts, others by count */

enum { NAMES_MAX = 3 };

struct names {
	uint32_t count;
	uint32_t ranks[NAMES_MAX];	/* the first of them */
	char text[768];			/* of format_names */
};

static void add_name(struct names *names, uint32_t rank)
{
	if (names->count < NAMES_MAX)
		names->ranks[names->count] = rank;
	names->count++;
}

static const char *get_host(const struct ddp_places *places, uint32_t rank)
{
	const char *name = places->host(places->of, rank);

	return name ? name : "an unknown host";
}

/*
 * "rank 1 on n1, rank 3 on n2 and 5 other ranks"; or, if it is all ranks of
 * several, "all 4 ranks". Borrowed from names.
 */
static const char *format_names(struct names *names, uint32_t all,
				const struct ddp_places *places)
{
	uint32_t i, named = names->count;
	const size_t room = sizeof(names->text);
	const char *before = "";
	char *text = names->text;
	uint32_t more;

	if (names->count == all && all > 1) {
		snprintf(text, room, "all %u ranks", all);
		return text;
	}
	if (named > NAMES_MAX)
		named = NAMES_MAX;
	more = names->count - named;
	text[0] = '\0';
	for (i = 0; i < named; i++) {
		snprintf(text + strlen(text), room - strlen(text),
			 "%srank %u on %s", before, names->ranks[i],
			 get_host(places, names->ranks[i]));
		before = i + 2 == named && more == 0 ? " and " : ", ";
	}
	if (more > 0)
		snprintf(text + strlen(text), room - strlen(text),
			 " and %u other%s", more, more > 1 ? " ranks" : "");
	return text;
}

/* ---- the census */

struct user {
	struct ddp_gpu_id gpu;
	uint32_t node;		/* of a bus id; 0 of a UUID */
	uint32_t team, rank;
};

struct ddp_census {
	struct ddp_places places;
	uint32_t added, user_count;
	struct names strays;	/* published no card */
	struct names others;	/* ask for something else */
	struct names failed;
	struct names skewed;	/* have another NCCL */
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
	add_name(&census->failed, census->added);
}

static void add_version(struct ddp_census *census, uint32_t version)
{
	if (census->nccl == 0) {
		census->nccl = version;
		census->nccl_rank = census->added;
	} else if (version != census->nccl) {
		if (census->skewed.count == 0)
			census->nccl_other = version;
		add_name(&census->skewed, census->added);
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
		add_name(&census->strays, census->added++);
		return;
	}
	if (census->added == 0)
		census->first = *card;
	if (!ask_alike(card, &census->first)) {
		if (census->others.count == 0)
			census->other = *card;
		add_name(&census->others, census->added);
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
			struct names *names)
{
	return format_names(names, census->added, &census->places);
}

static const char *host(const struct ddp_census *census, uint32_t rank)
{
	return get_host(&census->places, rank);
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
	struct names first = { 1, { census->failed.ranks[0] }, "" };

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
	struct names sharers = { 0 }, told = { 0 };
	const struct user *users = census->users, *gpu = NULL;
	uint32_t i, end, shared = 0;
	char text[48], more[48] = "";

	qsort(census->users, census->user_count, sizeof(*users), compare_users);
	for (i = 0; i < census->user_count; i = end) {
		sharers.count = 0;
		for (end = i; end < census->user_count &&
		     compare_gpus(&users[i], &users[end]) == 0; end++)
			add_name(&sharers, users[end].rank);
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

/* ---- which ranks a communicator has, and which of them are roots */

struct member {
	uint32_t key, rank;
};

static int compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool same(const uint32_t *color, uint32_t rank, uint32_t me)
{
	return !color || color[rank] == color[me];
}

uint32_t ddp_roster_get_first(uint32_t root, uint32_t roots, uint32_t size)
{
	uint32_t longer = size % roots;

	return root * (size / roots) + (root < longer ? root : longer);
}

static uint32_t count_members(uint32_t count, const uint32_t *color,
			      uint32_t me)
{
	uint32_t rank, found = 0;

	for (rank = 0; rank < count; rank++)
		found += same(color, rank, me);
	return found;
}

/* The keys rise with the ranks in most groups, and there is nothing to sort. */
static void fill_members(struct member *members, uint32_t count,
			 const uint32_t *color, const uint32_t *key,
			 uint32_t me)
{
	uint32_t rank, found = 0;
	bool sorted = true;

	for (rank = 0; rank < count; rank++) {
		if (!same(color, rank, me))
			continue;
		members[found].key = key ? key[rank] : 0;
		members[found].rank = rank;
		if (found > 0 && members[found].key < members[found - 1].key)
			sorted = false;
		found++;
	}
	if (!sorted)
		qsort(members, found, sizeof(*members), compare_members);
}

int ddp_roster_create(struct ddp_roster *roster, uint32_t count,
		      const uint32_t *color, const uint32_t *key, uint32_t me,
		      uint32_t ranks_per_root, struct ddp_error *error)
{
	struct member *members;
	uint32_t i, size, first;

	*roster = (struct ddp_roster){ 0 };
	if (color && color[me] == UINT32_MAX)
		return 0;
	size = count_members(count, color, me);
	roster->root_count = (size - 1) / ranks_per_root + 1;
	roster->roots = malloc(roster->root_count * sizeof(*roster->roots));
	members = malloc(size * sizeof(*members));
	if (!roster->roots || !members) {
		free(members);
		ddp_roster_destroy(roster);
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for a group of %u ranks",
				     size);
	}
	fill_members(members, count, color, key, me);
	roster->size = size;
	while (members[roster->rank].rank != me)
		roster->rank++;
	for (i = 0; i < roster->root_count; i++) {
		first = ddp_roster_get_first(i, roster->root_count, size);
		roster->roots[i] = members[first].rank;
	}
	free(members);
	return 0;
}

void ddp_roster_destroy(struct ddp_roster *roster)
{
	free(roster->roots);
	*roster = (struct ddp_roster){ 0 };
}
