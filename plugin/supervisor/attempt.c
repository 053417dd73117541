/* SPDX-License-Identifier: BSD-3-Clause */
/* One attempt at the step: what happens goes into its facts, and act.c acts. */
#define _GNU_SOURCE
#include "supervisor/attempt.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/act.h"
#include "util/clock.h"
#include "verdict/decide.h"
#include "verdict/times.h"

enum { SIGNALS, STDERR_IN, STDERR_OUT, TIMER, AGENTS };	/* what is polled */

static int get_timeout(const struct ddp_attempt *attempt)
{
	const struct ddp_facts *facts = &attempt->facts;
	int timer_ms = ddp_timer_timeout_ms(&attempt->timer);
	int absent_ms = ddp_absent_timeout_ms(attempt, ddp_clock_ns());

	if (facts->failed_ns || attempt->act.over_ns ||
	    facts->ended_ns || attempt->child.waits || attempt->relay.kept_ns)
		return DDP_TICK_MS;
	if (timer_ms >= 0 && timer_ms < DDP_PING_MS)
		return timer_ms;
	if (absent_ms >= 0)
		return absent_ms;
	return attempt->agents.count > 0 || facts->said.failed_ns ?
		DDP_PING_MS : -1;
}

static void wait_for_events(struct ddp_attempt *attempt)
{
	struct pollfd *fds = calloc(AGENTS + 1 + attempt->agents.count,
				    sizeof(*fds));
	struct ddp_relay *relay = &attempt->relay;
	size_t count;

	if (!fds)
		_exit(1);
	fds[SIGNALS].fd = attempt->child.signals;
	fds[STDERR_IN].fd = ddp_relay_reads(relay) ? relay->in : -1;
	fds[STDERR_OUT].fd = relay->out.length > 0 ? STDERR_FILENO : -1;
	fds[TIMER].fd = ddp_timer_fd(&attempt->timer);
	fds[SIGNALS].events = fds[STDERR_IN].events = POLLIN;
	fds[TIMER].events = POLLIN;
	fds[STDERR_OUT].events = POLLOUT;
	count = ddp_agents_fill(&attempt->agents, fds + AGENTS);
	if (poll(fds, AGENTS + count, get_timeout(attempt)) > 0) {
		ddp_agents_read(&attempt->agents, fds + AGENTS);
		/* The sieve takes lines of any step while it has no number. */
		if (attempt->facts.step.world_size > 0) {
			relay->sieve.job_id = attempt->facts.step.job_id;
			relay->sieve.step_id = attempt->facts.step.step_id;
		}
		if (fds[STDERR_IN].revents)
			ddp_relay_read(relay);
		if (fds[STDERR_OUT].revents)
			ddp_relay_flush(relay);
		if (fds[SIGNALS].revents)
			ddp_child_read(&attempt->child);
		/* What it has said before its end is known then. */
		if (attempt->child.ended)
			ddp_relay_read(relay);
	}
	ddp_child_pass(&attempt->child);
	free(fds);
}

/* Notes what srun is and does. */
static void take_facts(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_child *child = &attempt->child;
	struct ddp_facts *facts = &attempt->facts;

	facts->tasks = child->launch.tasks;
	if (facts->step.world_size == 0) {
		facts->step.job_id = child->launch.job_id;
		facts->step.step_id = child->launch.step_id;
	}
	facts->told_ns = ms(child->told_ms);
	facts->interrupted_ns = child->interrupted_ns;
	facts->status = child->status;
	if (child->ended && !facts->ended_ns)
		facts->ended_ns = now_ns;
	if (facts->phase == DDP_PHASE_LAUNCHING && facts->step.world_size > 0)
		ddp_facts_enter(facts, DDP_PHASE_RUNNING, now_ns);
}

bool ddp_attempt_unwanted(struct ddp_attempt *attempt)
{
	if (ddp_child_was_told(&attempt->child) && !attempt->facts.told_ns)
		attempt->facts.told_ns = ddp_clock_ns();
	return ddp_facts_unwanted(&attempt->facts);
}

static void watch(struct ddp_attempt *attempt)
{
	int64_t now_ns = ddp_clock_ns();

	ddp_facts_enter(&attempt->facts, DDP_PHASE_LAUNCHING, now_ns);
	while (!ddp_act_is_over(attempt, now_ns)) {
		wait_for_events(attempt);
		now_ns = ddp_clock_ns();
		ddp_agents_tick(&attempt->agents, now_ns);
		take_facts(attempt, now_ns);
		ddp_absent_tick(attempt, now_ns);
		ddp_watchdog_tick(attempt, now_ns);
		ddp_act_tick(attempt, now_ns);
	}
	ddp_facts_enter(&attempt->facts, DDP_PHASE_OVER, now_ns);
	ddp_act_end(attempt);
}

/*
 * srun is reached by pipes, and each node has a connection. srun's own limit is
 * that of its tasks, too.
 */
static void raise_limit(struct rlimit limit)
{
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int ddp_attempt_run(struct ddp_attempt *attempt,
		    const struct ddp_supervisor *wish,
		    const struct ddp_secret *secret)
{
	int rc;

	memset(attempt, 0, sizeof(*attempt));
	attempt->wish = wish;
	attempt->facts.kills = wish->kill;
	attempt->facts.alone = wish->alone;
	attempt->facts.step.launcher = wish->launcher;
	attempt->relay.in = -1;
	attempt->relay.sieve.quiet = wish->quiet;
	attempt->relay.sieve.said = &attempt->facts.said;
	attempt->agents.listener = wish->listener;
	attempt->agents.secret = secret;
	attempt->agents.facts = &attempt->facts;
	attempt->agents.relay = &attempt->relay;
	getrlimit(RLIMIT_NOFILE, &attempt->files);
	raise_limit(attempt->files);
	rc = ddp_child_start(&attempt->child,
			     wish->pty ? NULL : &attempt->relay.in);
	if (rc > 0)
		watch(attempt);
	else
		setrlimit(RLIMIT_NOFILE, &attempt->files);
	return rc;
}

void ddp_attempt_clear(struct ddp_attempt *attempt)
{
	setrlimit(RLIMIT_NOFILE, &attempt->files);
	ddp_timer_end(&attempt->timer);
	ddp_absent_clear(attempt);
	ddp_relay_clear(&attempt->relay);
	ddp_child_clear(&attempt->child);
	ddp_agents_clear(&attempt->agents);
	ddp_facts_clear(&attempt->facts);
}
