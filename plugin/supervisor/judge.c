/* SPDX-License-Identifier: BSD-3-Clause */
/* When it is clear who has failed first, and what is said of that. */
#define _GNU_SOURCE
#include "supervisor/judge.h"

#include "supervisor/abort.h"
#include "supervisor/cancel.h"
#include "supervisor/hidden.h"
#include "supervisor/now.h"

enum {
	HOLD_MS = 800,		/* lines of Slurm's, from the first failure */
	DECIDE_MS = 10000,	/* a node that may be lost is waited for */
	ERROR_MS = 1500,	/* so is a rank that had an error before */
	HIDDEN_MS = 1500,	/* srun may tell of a rank: hidden.h */
	TOLD_MS = 10000		/* a signal to srun explains what ranks do */
};

/*
 * Whether all is told. Ranks that end at once can do so before the agent of
 * another node is here.
 */
static bool is_told(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;

	return step->ended == step->world_size ||
	       (step->known == step->world_size &&
		ddp_agents_open(&attempt->agents) == 0);
}

/* Whether no more can be known about who failed first. */
static bool is_clear(const struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t waited_ns = now_ns - attempt->failed_ns;

	if (is_told(attempt))
		return true;
	if (ddp_agents_silent(&attempt->agents))
		return waited_ns >= ms(DECIDE_MS);
	if (!ddp_hidden_is_clear(attempt))
		return waited_ns >= ms(HIDDEN_MS);
	if (ddp_verdict_awaits_error(&attempt->step))
		return waited_ns >= ms(ERROR_MS);
	return waited_ns >= ms(ddp_verdict_wait_ms(&attempt->step));
}

static void decide(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_text text = { 0 };

	attempt->verdict = ddp_verdict_find(&attempt->step);
	attempt->ended_by_user |= ddp_cancel_explains(attempt,
						      &attempt->verdict);
	/* The agent may have been slow, and tell now. */
	if (attempt->untold_ns && attempt->verdict.at_ns > attempt->untold_ns)
		attempt->verdict.kind = DDP_VERDICT_NONE;
	else if (attempt->ended_by_user &&
		 attempt->verdict.kind != DDP_VERDICT_SAVED)
		attempt->verdict.kind = DDP_VERDICT_SIGNAL;
	else
		attempt->hidden = ddp_hidden_find(attempt, &attempt->verdict,
						  &text);
	if (attempt->hidden)
		attempt->verdict.kind = DDP_VERDICT_NONE;
	attempt->decided_ns = now_ns;
	ddp_verdict_add(&text, &attempt->verdict, &attempt->step);
	ddp_relay_say(&attempt->relay, &text);
}

/* How many ended because of it is known when all have ended. */
static void say_others(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };

	if (attempt->told_others || !ddp_attempt_named(attempt) ||
	    (!attempt->killed_ns && !attempt->step.grace.began_ns))
		return;
	ddp_verdict_add_others(&text, &attempt->verdict, &attempt->step);
	ddp_relay_say(&attempt->relay, &text);
	attempt->told_others = true;
}

static bool was_told(const struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t told_ns = ms(attempt->child.told_ms);

	if (attempt->relay.interrupted_ns > told_ns)
		told_ns = attempt->relay.interrupted_ns;
	return told_ns && now_ns - told_ns < ms(TOLD_MS);
}

/* Slurm's own lines come after ours, as far as that takes no long time. */
static bool has_held(const struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t waited_ns = now_ns - attempt->failed_ns;

	return waited_ns >= ms(ERROR_MS) ||
	       (waited_ns >= ms(HOLD_MS) &&
		(attempt->decided_ns ||
		 (ddp_hidden_is_clear(attempt) &&
		  !ddp_verdict_awaits_error(&attempt->step))));
}

void ddp_judge_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	bool all = is_told(attempt);

	if (!attempt->step.failed) {
		ddp_cancel_forget(attempt, now_ns);
		return;
	}
	if (!attempt->failed_ns) {
		attempt->failed_ns = now_ns;
		attempt->told = was_told(attempt, now_ns);
		attempt->ended_by_user = attempt->told ||
					 ddp_attempt_was_killed(attempt);
		ddp_agents_tell(&attempt->agents, DDP_WIRE_ERRORS, 0);
		ddp_cancel_note(attempt, now_ns);
		ddp_relay_hold(&attempt->relay);
	}
	if (!attempt->decided_ns)
		ddp_hidden_confirm(attempt);
	if (!attempt->decided_ns && is_clear(attempt, now_ns) &&
	    ddp_cancel_is_clear(attempt, now_ns))
		decide(attempt, now_ns);
	if (attempt->decided_ns && all)
		say_others(attempt);
	if (has_held(attempt, now_ns) || (attempt->decided_ns && all))
		ddp_relay_release(&attempt->relay);
}

void ddp_judge_end(struct ddp_attempt *attempt)
{
	if (ddp_abort_take(attempt))
		decide(attempt, attempt->ended_ns);
	/* After --ddp-signal, ranks that have saved have not failed. */
	if (!attempt->decided_ns &&
	    ddp_verdict_find(&attempt->step).kind == DDP_VERDICT_SAVED)
		decide(attempt, attempt->ended_ns);
	say_others(attempt);
}
