/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What follows from srun's lines. srun tells of failed ranks one after the other,
 * until it ends the step for them: what it says after that may come of the end.
 * Where ranks have called MPI_Abort it says nothing before.
 */
#define _GNU_SOURCE
#include "verdict/said.h"

#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "verdict/facts.h"
#include "verdict/times.h"

void ddp_said_forget(struct ddp_said *said)
{
	said->failed.length = 0;
	said->ends = DDP_SAID_NOTHING;
	said->failed_ns = said->aborted_ns = said->last_ns = 0;
	said->launch_failed = false;
}

bool ddp_said_is_recent(int64_t said_ns, int64_t now_ns)
{
	return said_ns && now_ns - said_ns < ms(DDP_SAID_MS);
}

bool ddp_said_cancelled(const struct ddp_said *said, int64_t now_ns)
{
	return ddp_said_is_recent(said->cancelled_ns, now_ns) ||
	       ddp_said_is_recent(said->aborted_ns, now_ns);
}

/*
 * The first bytes of the list of failed ranks, without its last comma, as
 * layout/tasks.h reads it; the caller's. NULL: none.
 */
static char *copy_list(const struct ddp_said *said, size_t length)
{
	char *list = length > 1 && !said->failed.failed ?
		strndup(said->failed.data, length - 1) : NULL;

	if (list && ddp_ranks_check("srun", list, 0, NULL) == 0)
		return list;
	free(list);
	return NULL;
}

bool ddp_said_lacks_ranks(const struct ddp_facts *facts, int64_t now_ns)
{
	return facts->said.launch_failed &&
	       facts->step.known < facts->step.world_size &&
	       now_ns - facts->said.failed_ns >= ms(DDP_UNWATCHED_MS);
}

bool ddp_said_is_reason(const struct ddp_facts *facts,
			const struct ddp_verdict *verdict)
{
	char *ranks = copy_list(&facts->said, facts->said.reason);
	bool is = ranks && ddp_verdict_is_before(verdict, &facts->step, ranks);

	free(ranks);
	return is;
}

/* Returns true if no agent tells of this rank, which failed so long ago. */
static bool is_unwatched(const struct ddp_step *step, uint32_t rank,
			 int64_t waited_ns)
{
	bool gone = step->ranks[rank].known &&
		    step->nodes[step->ranks[rank].node].left;

	return !ddp_step_is_watched(step, rank) &&
	       waited_ns >= ms(gone ? DDP_UNWATCHED_GONE_MS :
			       DDP_UNWATCHED_MS);
}

bool ddp_said_find_unwatched(const struct ddp_facts *facts, int64_t now_ns,
			     uint32_t *rank)
{
	const struct ddp_step *step = &facts->step;
	int64_t waited_ns = now_ns - facts->said.failed_ns;
	char *list = copy_list(&facts->said, facts->said.failed.length);
	bool found = false;
	uint32_t i;

	if (list && step->world_size == 0) {
		*rank = (uint32_t)strtoul(list, NULL, 10);
		found = waited_ns >= ms(DDP_UNWATCHED_MS);
	}
	for (i = 0; list && i < step->world_size && !found; i++) {
		*rank = i;
		found = ddp_ranks_has(list, i) &&
			is_unwatched(step, i, waited_ns);
	}
	free(list);
	return found;
}
