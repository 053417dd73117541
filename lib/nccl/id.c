/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes NCCL's unique ids, and takes those of other ranks from their cards.
 *
 * NCCL opens a listener for an id, and cannot close it. So an id to which no
 * rank will connect is kept, and the next call uses it.
 */
#include "nccl/setup.h"

#include <pthread.h>
#include <string.h>

#include "job/job.h"

enum { KEPT_MAX = 8 };

/* All jobs and threads of this process share these. */
static struct {
	pthread_mutex_t lock;
	unsigned int count;
	ncclUniqueId ids[KEPT_MAX];	/* no rank connected to them */
} unused = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Returns 0, or -1 with an error. */
static int take(const struct ddp_nccl *nccl, ncclUniqueId *id,
		struct ddp_error *error)
{
	int result = 0;

	pthread_mutex_lock(&unused.lock);
	if (unused.count > 0)
		*id = unused.ids[--unused.count];
	else
		result = nccl->get_unique_id(id);
	pthread_mutex_unlock(&unused.lock);
	if (result != 0)
		return ddp_nccl_set_error(error, nccl, "ncclGetUniqueId",
					  result);
	return 0;
}

static void give_back(const ncclUniqueId *id)
{
	pthread_mutex_lock(&unused.lock);
	if (unused.count < KEPT_MAX)
		unused.ids[unused.count++] = *id;
	pthread_mutex_unlock(&unused.lock);
}

static void make_id(struct ddp_setup *setup, uint32_t group, uint32_t root)
{
	struct ddp_card_id *id = &setup->mine.ids[setup->mine.id_count];
	struct ddp_error why = { 0 };
	ncclUniqueId made;

	if (take(setup->nccl, &made, &why) != 0) {
		ddp_setup_fail(setup, &why);
		return;
	}
	id->group = group;
	id->root = root;
	memcpy(id->bytes, &made, sizeof(id->bytes));
	setup->mine.id_count++;
}

/* A rank that cannot take part makes no id, which would open a listener. */
void ddp_ids_make(struct ddp_setup *setup)
{
	uint32_t me = ddp_job_rank(setup->job), root;
	const struct ddp_team *team;
	unsigned int i;

	for (i = 0; i < setup->team_count; i++) {
		team = &setup->teams[i];
		for (root = 0; root < team->roster.root_count; root++)
			if (team->roster.roots[root] == me &&
			    setup->mine.code == DDP_ERROR_NONE)
				make_id(setup, team->group, root);
	}
}

/* No rank has connected to them: none calls NCCL if the census refuses. */
void ddp_ids_return(struct ddp_setup *setup)
{
	ncclUniqueId id;

	while (setup->mine.id_count > 0) {
		setup->mine.id_count--;
		memcpy(&id, setup->mine.ids[setup->mine.id_count].bytes,
		       sizeof(id));
		give_back(&id);
	}
}

/* The first id of a root counts. One of zeros alone is none. */
static void keep_id(struct ddp_team *team, const struct ddp_card_id *id)
{
	static const ncclUniqueId none;
	ncclUniqueId *kept = &team->ids[id->root];

	if (memcmp(kept, &none, sizeof(none)) != 0 ||
	    memcmp(id->bytes, &none, sizeof(none)) == 0)
		return;
	memcpy(kept, id->bytes, sizeof(*kept));
	team->id_count++;
}

void ddp_ids_keep(struct ddp_setup *setup, uint32_t rank,
		  const struct ddp_card *card)
{
	const struct ddp_card_id *id;
	struct ddp_team *team;
	unsigned int i;
	uint32_t k;

	for (k = 0; k < card->id_count; k++) {
		id = &card->ids[k];
		for (i = 0; i < setup->team_count; i++) {
			team = &setup->teams[i];
			if (team->group == id->group &&
			    id->root < team->roster.root_count &&
			    team->roster.roots[id->root] == rank)
				keep_id(team, id);
		}
	}
}
