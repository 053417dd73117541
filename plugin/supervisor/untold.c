/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where Slurm leaves the end of the step to us, of a rank on a node that is not
 * watched srun alone tells that it has failed.
 */
#define _GNU_SOURCE
#include "supervisor/untold.h"

#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "supervisor/cancel.h"
#include "supervisor/now.h"

enum {
	UNTOLD_MS = 3000,	/* an agent may yet come, or answer */
	GONE_MS = 500		/* one that has ended does not */
};

/* Whether no agent tells of this rank, which failed so long ago. */
static bool is_unwatched(const struct ddp_step *step, uint32_t rank,
			 int64_t waited_ns)
{
	bool gone = step->ranks[rank].known &&
		    step->nodes[step->ranks[rank].node].left;

	return !ddp_step_is_watched(step, rank) &&
	       waited_ns >= ms(gone ? GONE_MS : UNTOLD_MS);
}

/* The lowest of the ranks that have failed, as srun alone said so long ago. */
static bool find_unwatched(const struct ddp_attempt *attempt,
			   int64_t waited_ns, uint32_t *rank)
{
	const struct ddp_text *failed = &attempt->relay.sieve.failed;
	const struct ddp_step *step = &attempt->step;
	char *list = failed->failed ? NULL :
		     strndup(failed->data, failed->length - 1);
	bool found = false;
	uint32_t i;

	if (list && step->world_size == 0) {
		*rank = (uint32_t)strtoul(list, NULL, 10);
		found = waited_ns >= ms(UNTOLD_MS);
	} else if (list && ddp_ranks_check("srun", list, 0, NULL) == 0) {
		for (i = 0; i < step->world_size && !found; i++) {
			*rank = i;
			found = ddp_ranks_has(list, i) &&
				is_unwatched(step, i, waited_ns);
		}
	}
	free(list);
	return found;
}

void ddp_untold_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t said_ns = attempt->relay.failed_ns;
	struct ddp_text text = { 0 };
	uint32_t rank;

	if (attempt->untold_ns || !attempt->wish->alone || !said_ns ||
	    attempt->step.noticed || attempt->child.told_ms ||
	    ddp_cancel_was_said(attempt, now_ns) ||
	    !find_unwatched(attempt, now_ns - said_ns, &rank))
		return;
	attempt->untold_ns = now_ns;
	ddp_text_add(&text, "slurm-ddp: rank %u has failed, as srun says, on a "
		     "node that is not watched, and so the step ends%s\n", rank,
		     attempt->wish->grace_s ?
		     "; on such nodes there is no --ddp-grace" : "");
	ddp_relay_say(&attempt->relay, &text);
}
