/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a rank calls MPI_Abort or PMIx_Abort, Slurm's mpi/pmix has the whole
 * step killed, mostly before an agent could tell of that rank; and slurmstepd
 * says what it says of scancel, too. But srun ends with the code of the call
 * then, and else with that of a signal, as ranks that it has heard of were
 * killed (Slurm's srun/srun.c and mpi/pmix/pmixp_agent.c).
 */
#define _GNU_SOURCE
#include "supervisor/abort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/ranks.h"

enum { SIGNALLED = 128 };	/* a shell's code of a signal is more */

static bool are_agents_killed(const struct ddp_step *step)
{
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].known && !step->ranks[i].ended &&
		    step->nodes[step->ranks[i].node].left)
			return true;
	return false;
}

/* 0: nobody has called it. */
static int find_code(const struct ddp_attempt *attempt)
{
	const struct ddp_child *child = &attempt->child;
	const struct ddp_relay *relay = &attempt->relay;
	int code = child->ended ? ddp_child_code(child) : 0;
	bool ours = attempt->asked_ns || attempt->killed_ns ||
		    attempt->untold_ns || attempt->told ||
		    ddp_child_was_told(child) || child->interrupted_ms;

	return !ours && code < SIGNALLED && relay->cancelled_ns &&
	       relay->sieve.ends == DDP_SIEVE_OTHERS && !relay->sieve.due &&
	       are_agents_killed(&attempt->step) ? code : 0;
}

/* The one that has ended by this code, srun says; false: several, or none. */
static bool find_exited(const struct ddp_attempt *attempt, int code,
			uint32_t *rank)
{
	const struct ddp_step *step = &attempt->step;
	const char *text = attempt->relay.sieve.exited.data;
	char *all = text ? strdup(text) : NULL, *line, *colon, *save;
	uint32_t i, count = 0;

	for (line = all ? strtok_r(all, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		colon = strchr(line, ':');
		*colon = '\0';
		if (atoi(colon + 1) != code ||
		    ddp_ranks_check("srun", line, 0, NULL) < 0)
			continue;
		for (i = 0; i < step->world_size; i++)
			if (step->ranks[i].known && ddp_ranks_has(line, i)) {
				*rank = i;
				count++;
			}
	}
	free(all);
	return count == 1;
}

/* The rank that Open MPI says has. */
static bool find_told(const struct ddp_attempt *attempt, uint32_t *rank)
{
	const struct ddp_step *step = &attempt->step;

	*rank = attempt->relay.sieve.aborter - 1;
	return *rank < step->world_size && step->ranks[*rank].known;
}

bool ddp_abort_find(struct ddp_attempt *attempt)
{
	int code = find_code(attempt);
	uint32_t rank;

	if (!code)
		return false;
	attempt->cancelled = attempt->aborted = attempt->ended_by_user = false;
	if (find_told(attempt, &rank) || find_exited(attempt, code, &rank))
		ddp_step_add_abort(&attempt->step, rank, code,
				   "MPI_Abort or PMIx_Abort",
				   attempt->relay.cancelled_ns);
	else
		attempt->abort_code = code;
	return true;
}
