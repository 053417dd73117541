/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether somebody has cancelled the step, or its job, so that what its ranks
 * then do is no failure. slurmstepd says so; but it says the same in two other
 * cases, and may be faster than the agent of the rank that is to blame, though
 * slurmstepd waits up to 3 s for that one.
 *
 * srun has the step killed as a rank has failed. Then it has said so before, and
 * which rank that was.
 *
 * mpi/pmix has it killed as a rank has ended. That is by SIGKILL, which agents
 * do not survive, and by which no rank ends with an exit code. A job that is
 * cancelled may get SIGTERM just before; then slurmctld knows it.
 */
#define _GNU_SOURCE
#include "supervisor/cancel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/tasks.h"
#include "slurm/scontrol.h"
#include "supervisor/now.h"

enum {
	SAID_MS = 40000,	/* for so long it explains what ranks do: more
				 * than KillWait usually is */
	ANSWER_MS = 1500,	/* slurmctld's, or a slow agent's */
	LATE_MS = 5000,		/* the same, when srun has ended */
	END_MS = 5000		/* srun's, when others have ended its step */
};

static bool was_said(int64_t said_ns, int64_t now_ns)
{
	return said_ns && now_ns - said_ns < ms(SAID_MS);
}

bool ddp_cancel_was_said(const struct ddp_attempt *attempt, int64_t now_ns)
{
	return was_said(attempt->relay.cancelled_ns, now_ns) ||
	       was_said(attempt->relay.aborted_ns, now_ns);
}

void ddp_cancel_forget(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->step;
	struct ddp_relay *relay = &attempt->relay;
	uint32_t i = 0;

	if (!relay->said_ns || relay->sieve.ends == DDP_SIEVE_SRUN ||
	    was_said(relay->cancelled_ns, now_ns))
		return;
	while (i < step->world_size &&
	       ddp_step_denies(step, i, relay->said_ns))
		i++;
	if (step->world_size > 0 && i == step->world_size)
		ddp_relay_forget(relay);
}

void ddp_cancel_note(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_relay *relay = &attempt->relay;

	attempt->cancelled = was_said(relay->cancelled_ns, now_ns);
	attempt->aborted = was_said(relay->aborted_ns, now_ns);
}

/* In the helper: 0 if the job simply runs. Tasks of its array may follow it. */
static int ask(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	char id[16], *answer;
	bool runs;

	/* A user has nothing from its complaints. */
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	snprintf(id, sizeof(id), "%u", attempt->step.job_id);
	answer = ddp_squeue_show(id, "-o", "%A %T");
	runs = answer && strcmp(answer, "RUNNING") == 0;
	free(answer);
	return runs ? 0 : 1;
}

static bool has_lost_agents(const struct ddp_step *step)
{
	uint32_t i;

	for (i = 0; i < step->node_count; i++)
		if (step->nodes[i].left)
			return true;
	return false;
}

/* Whether srun ends the step for what this verdict says. */
static bool is_sruns_reason(const struct ddp_attempt *attempt,
			    const struct ddp_verdict *verdict)
{
	const struct ddp_sieve *sieve = &attempt->relay.sieve;
	char *ranks = sieve->failed.failed ? NULL :
		      strndup(sieve->failed.data, sieve->reason - 1);
	bool is = ranks && ddp_ranks_check("srun", ranks, 0, NULL) == 0 &&
		  ddp_verdict_is_before(verdict, &attempt->step, ranks);

	free(ranks);
	return is;
}

/* Whether what srun has said tells by now what that of slurmstepd's means. */
static bool is_sruns_clear(struct ddp_attempt *attempt,
			   const struct ddp_verdict *verdict, int64_t now_ns)
{
	if (is_sruns_reason(attempt, verdict))
		attempt->cancelled = attempt->aborted = false;
	else if (!ddp_verdict_is_own(verdict, &attempt->step) &&
		 ddp_agents_open(&attempt->agents) > 0)
		return now_ns - attempt->failed_ns >= ms(ANSWER_MS);
	return true;
}

/*
 * Whether others than srun have ended the step, as far as is known, and this
 * rank got a signal. Its agent may be faster than what slurmstepd says.
 */
static bool is_others(const struct ddp_attempt *attempt,
		      const struct ddp_verdict *verdict)
{
	return attempt->relay.sieve.ends == DDP_SIEVE_OTHERS &&
	       !attempt->asked_ns &&
	       ddp_verdict_is_sent(verdict, &attempt->step);
}

/*
 * They are a user, or ranks that call MPI_Abort as they miss one. With mpi/pmix
 * the code of that call is srun's own; else that of a rank is.
 */
static bool has_aborted(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;
	int code = ddp_child_code(&attempt->child);
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended &&
		    ddp_step_code(step->ranks[i].status) == code)
			return false;
	return attempt->child.ended;
}

bool ddp_cancel_was_late(const struct ddp_attempt *attempt)
{
	return is_others(attempt, &attempt->verdict) &&
	       !has_aborted(attempt);
}

bool ddp_cancel_ask(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_child *child = &attempt->child;
	int64_t limit_ns = ms(attempt->ended_ns ? LATE_MS : ANSWER_MS);

	if (!attempt->doubted_ns) {
		attempt->doubted_ns = now_ns;
		ddp_child_help(child, ask, attempt);
	}
	if (child->helper && now_ns - attempt->doubted_ns < limit_ns)
		return false;
	ddp_child_end_helper(child);
	attempt->runs |= child->answer == 0;
	child->answer = -1;
	return true;
}

/* Whether it is known, or will not be, if slurmctld has cancelled the job. */
static bool has_answered(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!ddp_cancel_ask(attempt, now_ns))
		return false;
	if (attempt->runs)
		attempt->cancelled = false;
	return true;
}

bool ddp_cancel_is_clear(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_verdict verdict = ddp_verdict_find(&attempt->step);

	if (!attempt->cancelled && !attempt->aborted) {
		if (!is_others(attempt, &verdict))
			return true;
		if (!attempt->child.ended &&
		    !ddp_agents_over(&attempt->agents) &&
		    now_ns - attempt->failed_ns < ms(END_MS))
			return false;
		attempt->cancelled = !has_aborted(attempt);
		return true;
	}
	if (attempt->relay.sieve.ends == DDP_SIEVE_SRUN &&
	    !is_sruns_clear(attempt, &verdict, now_ns))
		return false;
	return !attempt->cancelled || !has_lost_agents(&attempt->step) ||
	       verdict.kind != DDP_VERDICT_RANK ||
	       ddp_verdict_is_own(&verdict, &attempt->step) ||
	       ddp_verdict_is_sent(&verdict, &attempt->step) ||
	       has_answered(attempt, now_ns);
}

bool ddp_cancel_explains(const struct ddp_attempt *attempt,
			 const struct ddp_verdict *verdict)
{
	return (attempt->cancelled &&
		!ddp_verdict_is_own(verdict, &attempt->step)) ||
	       (attempt->aborted &&
		ddp_verdict_is_sent(verdict, &attempt->step));
}
