/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds which ranks a communicator has, and which of them are roots. */
#include "nccl/roster.h"

#include <stdbool.h>
#include <stdlib.h>

#include "util/error.h"

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
