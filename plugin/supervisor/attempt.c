/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One attempt at the step: what happens goes into its struct, and what is due
 * follows from there.
 */
#define _GNU_SOURCE
#include "supervisor/attempt.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/abort.h"
#include "supervisor/cancel.h"
#include "supervisor/ending.h"
#include "supervisor/hidden.h"
#include "supervisor/judge.h"
#include "supervisor/now.h"
#include "supervisor/untold.h"

enum {
	SIGNALS, STDERR_IN, STDERR_OUT, TIMER, AGENTS,	/* what is polled */
	LEFT_MS = 2000,		/* an agent left, and the step did not end */
	EARLY_MS = 30000,	/* ranks have ended well, and others run */
	LAST_MS = 1000,		/* srun has ended, and ranks have not */
	SCANCEL_MS = 3000,	/* the same, and scancel has not */
	TICK_MS = 20
};

bool ddp_attempt_named(const struct ddp_attempt *attempt)
{
	return attempt->decided_ns &&
	       (attempt->verdict.kind == DDP_VERDICT_RANK ||
		attempt->verdict.kind == DDP_VERDICT_NODE ||
		attempt->verdict.kind == DDP_VERDICT_HANG);
}

/* srun, which gives up then, ends with 0 if those that began did. */
static bool has_unbegun(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;
	uint32_t tasks = step->world_size ? step->world_size :
			 attempt->child.launch.tasks;

	return attempt->relay.sieve.given_up == tasks && step->known < tasks;
}

int ddp_attempt_code(const struct ddp_attempt *attempt)
{
	int worst = ddp_step_worst(&attempt->step);

	if (ddp_attempt_named(attempt))
		return ddp_verdict_code(&attempt->verdict, &attempt->step);
	if (attempt->struck)
		return (attempt->untold_ns || attempt->failed_ns) &&
		       worst == 0 ? 1 : worst;
	if (has_unbegun(attempt) && ddp_child_code(&attempt->child) == 0)
		return 1;
	return ddp_child_code(&attempt->child);
}

bool ddp_attempt_was_killed(const struct ddp_attempt *attempt)
{
	return attempt->child.ended && !attempt->struck &&
	       WIFSIGNALED(attempt->child.status);
}

bool ddp_attempt_unwanted(const struct ddp_attempt *attempt)
{
	return attempt->ended_by_user || ddp_attempt_was_killed(attempt) ||
	       ddp_child_was_told(&attempt->child) ||
	       ddp_cancel_was_late(attempt) ||
	       attempt->child.interrupted_ns > attempt->failed_ns;
}

/*
 * Whether all ranks that nobody knows can be those of nodes on which srun could
 * not start any. Of how many there were to be, the other nodes tell.
 */
static bool is_unlaunched(const struct ddp_step *step)
{
	uint32_t i, nodes = 0, ranks = UINT32_MAX;

	for (i = 0; i < step->node_count; i++) {
		if (step->nodes[i].unlaunched)
			nodes++;
		else if (step->nodes[i].count < ranks)
			ranks = step->nodes[i].count;
	}
	return step->world_size - step->known <= (uint64_t)nodes * ranks;
}

bool ddp_attempt_gone(const struct ddp_attempt *attempt)
{
	const struct ddp_step *step = &attempt->step;
	const struct ddp_step_node *node;
	uint32_t i;

	if (ddp_agents_open(&attempt->agents) > 0)
		return false;
	/* srun ends by itself when all of its tasks have. */
	if (!attempt->struck)
		return true;
	for (i = 0; i < step->world_size; i++) {
		node = &step->nodes[step->ranks[i].node];
		if (step->ranks[i].known && !step->ranks[i].ended &&
		    !node->lost && !node->orphaned)
			return false;
	}
	return step->known == step->world_size || is_unlaunched(step);
}

static int get_timeout(const struct ddp_attempt *attempt)
{
	int timer_ms = ddp_timer_timeout_ms(&attempt->timer);
	int absent_ms = ddp_absent_timeout_ms(attempt, ddp_clock_ns());

	if (attempt->failed_ns || attempt->over_ns || attempt->ended_ns ||
	    attempt->child.waits || attempt->relay.kept_ns)
		return TICK_MS;
	if (timer_ms >= 0 && timer_ms < DDP_AGENTS_PING_MS)
		return timer_ms;
	if (absent_ms >= 0)
		return absent_ms;
	return attempt->agents.count > 0 || attempt->relay.failed_ns ?
		DDP_AGENTS_PING_MS : -1;
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
		relay->sieve.job_id = attempt->step.job_id;
		relay->sieve.step_id = attempt->step.step_id;
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

/* An agent that is killed with its ranks leaves, too: then the step ends. */
static void warn_of_left(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_agents *agents = &attempt->agents;
	struct ddp_peer *agent;
	struct ddp_text text = { 0 };
	size_t i;

	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		if (!agent->left || agent->warned ||
		    now_ns - agent->since_ns < ms(LEFT_MS))
			continue;
		agent->warned = true;
		ddp_text_add_quoted(&text, "slurm-ddp: node %s is not watched "
				    "any more, as its ddp-agent has ended; "
				    "the step goes on under Slurm's own rules",
				    attempt->step.nodes[agent->node].name);
		ddp_text_add(&text, "\n");
		ddp_relay_say(&attempt->relay, &text);
	}
}

static void say_early(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->step;
	struct ddp_text text = { 0 };

	if (attempt->told_early || step->ended == 0 ||
	    step->ended == step->world_size || step->known < step->world_size)
		return;
	if (!attempt->early_ns)
		attempt->early_ns = now_ns;
	if (now_ns - attempt->early_ns < ms(EARLY_MS))
		return;
	attempt->told_early = true;
	ddp_verdict_add_early(&text, step);
	ddp_relay_say(&attempt->relay, &text);
}

/*
 * A rank that ends before it leaves MPI or PMIx makes Slurm's mpi/pmix kill the
 * step, and by its exit code nobody has failed. Returns whether that is so.
 */
static bool say_gone(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };

	if (ddp_attempt_named(attempt) || attempt->told_early ||
	    attempt->told || attempt->untold_ns || attempt->step.noticed ||
	    ddp_child_code(&attempt->child) == 0)
		return false;
	ddp_verdict_add_gone(&text, &attempt->step);
	if (text.length == 0)
		return false;
	ddp_relay_say(&attempt->relay, &text);
	return true;
}

/* Nobody else says so; Slurm's shepherd of srun then ends the step. */
static void say_killed(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };

	if (!ddp_attempt_was_killed(attempt) || attempt->untold_ns)
		return;
	ddp_text_add(&text, "slurm-ddp: srun itself was killed by signal %d, "
		     "and so the step ends\n", WTERMSIG(attempt->child.status));
	ddp_relay_say(&attempt->relay, &text);
}

/* srun has ended. What it has left an agent ends. */
static void end_left(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!attempt->ended_ns) {
		attempt->ended_ns = now_ns;
		say_killed(attempt);
	}
	if (!attempt->killed_ns &&
	    (WIFSIGNALED(attempt->child.status) ||
	     now_ns - attempt->ended_ns >= ms(LAST_MS))) {
		ddp_agents_tell(&attempt->agents, DDP_WIRE_KILL, 0);
		attempt->killed_ns = attempt->step.grace.over_ns = now_ns;
	}
}

static bool has_ended(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!attempt->ended_ns || (attempt->failed_ns && !attempt->decided_ns))
		return false;
	if (ddp_abort_is_likely(attempt) && !ddp_cancel_ask(attempt, now_ns))
		return false;
	if (attempt->killed_ns && attempt->child.helper &&
	    now_ns - attempt->ended_ns < ms(SCANCEL_MS))
		return false;
	return ddp_agents_open(&attempt->agents) == 0 || attempt->over_ns ||
	       now_ns - attempt->ended_ns >= ms(2 * LAST_MS);
}

/* The signal before the job's end, from when there are ranks to get it. */
static void give_notice(struct ddp_attempt *attempt)
{
	struct ddp_text said = { 0 };
	int signal;

	if (!attempt->begun && attempt->step.world_size > 0) {
		ddp_timer_begin(&attempt->timer, &attempt->wish->notice,
				attempt->step.job_id);
		attempt->step.saves = attempt->wish->notice.number;
		attempt->begun = true;
	}
	if (attempt->failed_ns || attempt->child.ended)
		ddp_timer_end(&attempt->timer);
	signal = ddp_timer_run(&attempt->timer, &said);
	if (said.length > 0)
		ddp_relay_say(&attempt->relay, &said);
	if (signal) {
		ddp_agents_tell(&attempt->agents, DDP_WIRE_SIGNAL, signal);
		attempt->step.noticed = true;
	}
}

/* Whether the step has failed, or so it seems, and nobody was told why. */
static bool is_unknown(const struct ddp_attempt *attempt)
{
	const struct ddp_child *child = &attempt->child;

	return !ddp_attempt_named(attempt) && !attempt->hidden &&
	       !attempt->untold_ns && !attempt->step.noticed &&
	       attempt->verdict.kind != DDP_VERDICT_SAVED &&
	       !ddp_child_was_told(child) && !child->interrupted_ns &&
	       WIFEXITED(child->status) && ddp_attempt_code(attempt) != 0;
}

/*
 * Neither Slurm nor a user has said why the step ends. Where Slurm says that it
 * is cancelled, it can have meant what srun had done.
 */
static void say_unknown(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };
	bool went_on = false;
	size_t i;

	if (!is_unknown(attempt))
		return;
	for (i = 0; i < attempt->agents.count; i++)
		went_on |= attempt->agents.all[i].warned;
	if (!ddp_hidden_add_named(attempt, &text) &&
	    !ddp_attempt_unwanted(attempt) && !attempt->relay.cancelled_ns)
		ddp_verdict_add_unknown(&text, &attempt->step, went_on);
	ddp_relay_say(&attempt->relay, &text);
}

static void watch(struct ddp_attempt *attempt)
{
	int64_t now_ns = 0;

	while (!has_ended(attempt, now_ns)) {
		wait_for_events(attempt);
		now_ns = ddp_clock_ns();
		ddp_agents_tick(&attempt->agents, now_ns);
		ddp_absent_tick(attempt, now_ns);
		ddp_watchdog_tick(attempt, now_ns);
		ddp_judge_tick(attempt, now_ns);
		if (!attempt->failed_ns && attempt->step.known > 0)
			ddp_relay_delay(&attempt->relay, now_ns);
		if (!attempt->child.ended && !attempt->failed_ns)
			ddp_untold_tick(attempt, now_ns);
		ddp_ending_tick(attempt, now_ns);
		give_notice(attempt);
		if (attempt->child.ended)
			end_left(attempt, now_ns);
		else if (!attempt->step.failed && !attempt->step.noticed)
			say_early(attempt, now_ns);
		if (!attempt->child.ended && !attempt->failed_ns &&
		    !attempt->untold_ns)
			warn_of_left(attempt, now_ns);
	}
	ddp_child_end_helper(&attempt->child);
	ddp_judge_end(attempt);
	if (!say_gone(attempt))
		say_unknown(attempt);
	ddp_relay_finish(&attempt->relay);
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
	attempt->step.launcher = wish->launcher;
	attempt->relay.in = -1;
	attempt->relay.sieve.quiet = wish->quiet;
	attempt->agents.listener = wish->listener;
	attempt->agents.secret = secret;
	attempt->agents.step = &attempt->step;
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
	ddp_step_clear(&attempt->step);
}
