/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a rank calls MPI_Abort, Slurm's mpi/pmix has the whole step killed,
 * mostly before an agent could tell of that rank; and slurmstepd says the same
 * as of scancel. But Open MPI has said it before, and srun ends with the code of
 * the call, and not with that of a signal, as it does where ranks are killed
 * (Slurm's srun/srun.c and mpi/pmix/pmixp_agent.c).
 */
#define _GNU_SOURCE
#include "supervisor/abort.h"

#include "supervisor/now.h"

enum {
	SIGNALS = 128, SIGNALS_END = 192,	/* a shell's codes of them */
	BEFORE_MS = 1000,	/* an agent that is killed with the step */
	AFTER_MS = 10000
};

/* Whether a rank has failed in a way in which mpi/pmix ends none. */
static bool has_other_failure(const struct ddp_step *step)
{
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended && step->ranks[i].status != 0 &&
		    !ddp_step_was_killed(step->ranks[i].status))
			return true;
	return false;
}

/* Whether this rank's end is not known, or can be that of the call. */
static bool may_have_called(const struct ddp_step_rank *rank)
{
	return rank->known &&
	       (!rank->ended || ddp_step_was_killed(rank->status));
}

static bool was_killed(const struct ddp_step_node *node, int64_t invoked_ns)
{
	return node->left && node->left_ns - invoked_ns > -ms(BEFORE_MS) &&
	       node->left_ns - invoked_ns < ms(AFTER_MS);
}

/* Whether that was the end of the agents, too, of ranks that had not ended. */
static bool are_agents_killed(const struct ddp_step *step, int64_t invoked_ns)
{
	const struct ddp_step_rank *rank;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		if (rank->known && !rank->ended &&
		    was_killed(&step->nodes[rank->node], invoked_ns))
			return true;
	}
	return false;
}

/* The code of the call; 0: srun has ended in another way. */
static int find_code(const struct ddp_child *child)
{
	int code = child->ended ? ddp_child_code(child) : 0;

	return code > SIGNALS && code <= SIGNALS_END ? 0 : code;
}

/* Whether a user or we ourselves have ended it. */
static bool was_ended(const struct ddp_attempt *attempt)
{
	const struct ddp_child *child = &attempt->child;
	int64_t interrupted_ns = child->interrupted_ns;

	return attempt->asked_ns || attempt->untold_ns || attempt->told ||
	       (attempt->killed_ns && attempt->killed_ns < attempt->ended_ns) ||
	       ddp_child_was_told(child) ||
	       (interrupted_ns &&
		attempt->relay.invoked_ns - interrupted_ns < ms(AFTER_MS));
}

bool ddp_abort_is_likely(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;
	const struct ddp_relay *relay = &attempt->relay;

	return relay->invoked_ns && relay->aborter < step->world_size &&
	       may_have_called(&step->ranks[relay->aborter]) &&
	       find_code(&attempt->child) && !ddp_attempt_named(attempt) &&
	       !was_ended(attempt) && !has_other_failure(step) &&
	       are_agents_killed(step, relay->invoked_ns);
}

bool ddp_abort_take(struct ddp_attempt *attempt)
{
	if (!ddp_abort_is_likely(attempt) || !attempt->runs)
		return false;
	attempt->cancelled = attempt->aborted = attempt->ended_by_user = false;
	if (!attempt->failed_ns)
		attempt->failed_ns = attempt->relay.invoked_ns;
	ddp_step_add_abort(&attempt->step, attempt->relay.aborter,
			   find_code(&attempt->child), "MPI_Abort",
			   attempt->relay.invoked_ns);
	return true;
}
