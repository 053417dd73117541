/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-watchdog: whether the step hangs. Agents count the time, so that none
 * in which they are frozen with their ranks counts. Nor does the time in which
 * nobody reads the output, or srun is stopped: then the ranks wait for that.
 */
#define _GNU_SOURCE
#include "supervisor/watchdog.h"

#include "supervisor/act.h"
#include "supervisor/attempt.h"
#include "verdict/hang.h"
#include "verdict/names.h"
#include "verdict/times.h"

enum {
	AWAY_MS = 5000,		/* without a tick, srun was stopped */
	PARDON_MS = 10000,	/* then what was held up meanwhile arrives */
	DETAILS_MS = 4000	/* agents take a second less */
};

/* For how long the step has been idle by its own fault. */
static uint32_t measure(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_watchdog *watchdog = &attempt->watchdog;
	uint32_t idle_ms = ddp_hang_idle_ms(&attempt->facts.step, now_ns);

	if ((watchdog->ticked_ns &&
	     now_ns - watchdog->ticked_ns > ms(AWAY_MS)) ||
	    ddp_act_is_writing(attempt))
		watchdog->pardons_ns = now_ns + ms(PARDON_MS);
	if (now_ns < watchdog->pardons_ns)
		watchdog->pardoned_ms = idle_ms;
	else if (idle_ms < watchdog->idle_ms)
		watchdog->pardoned_ms = 0;
	watchdog->idle_ms = idle_ms;
	watchdog->ticked_ns = now_ns;
	return idle_ms - watchdog->pardoned_ms;
}

static void ask(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (ddp_hang_begin(&attempt->facts.step, attempt->wish->watchdog_s) < 0)
		return;
	attempt->watchdog.asked_ns = now_ns;
	ddp_agents_tell(&attempt->agents, DDP_WIRE_EXPLAIN, 0);
}

static bool is_unknown(const struct ddp_step *step, uint32_t rank,
		       const void *context)
{
	(void)context;
	return !step->ranks[rank].known;
}

/* A rank that never begins keeps the others waiting, without an end. */
static void say_unknown(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->facts.step;
	uint32_t seconds = attempt->wish->watchdog_s;
	struct ddp_text text = { 0 };

	if (attempt->watchdog.told || step->known == step->world_size ||
	    (now_ns - step->start_ns) / ms(1000) < seconds)
		return;
	attempt->watchdog.told = true;
	ddp_text_add(&text, "slurm-ddp: nothing is known of ");
	ddp_who_add(&text, step, is_unknown, NULL);
	ddp_text_add(&text, ", %u s after others have begun: they were not "
		     "started, or their node is not watched; --ddp-watchdog "
		     "waits until all have begun\n", seconds);
	ddp_relay_say(&attempt->relay, &text);
}

void ddp_watchdog_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_watchdog *watchdog = &attempt->watchdog;
	bool hangs;

	if (!attempt->wish->watchdog_s || attempt->facts.step.failed ||
	    attempt->facts.ended_ns)
		return;
	say_unknown(attempt, now_ns);
	hangs = measure(attempt, now_ns) / 1000 >= attempt->wish->watchdog_s;
	if (hangs && !watchdog->asked_ns) {
		ask(attempt, now_ns);
	} else if (!hangs && watchdog->asked_ns) {
		watchdog->asked_ns = 0;
		ddp_hang_clear(&attempt->facts.step);
	} else if (hangs && (ddp_hang_complete(&attempt->facts.step) ||
			     now_ns - watchdog->asked_ns >= ms(DETAILS_MS))) {
		ddp_hang_judge(&attempt->facts.step, now_ns);
		attempt->facts.step.failed = true;
	}
}
