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

#include "layout/ranks.h"
#include "supervisor/cancel.h"
#include "supervisor/ending.h"
#include "supervisor/now.h"

enum {
	SIGNALS, STDERR_IN, STDERR_OUT, TIMER, AGENTS,	/* what is polled */
	HOLD_MS = 800,		/* lines of Slurm's, from the first failure */
	DECIDE_MS = 10000,	/* a node that may be lost is waited for */
	LEFT_MS = 2000,		/* an agent left, and the step did not end */
	EARLY_MS = 30000,	/* ranks have ended well, and others run */
	LAST_MS = 1000,		/* srun has ended, and ranks have not */
	TOLD_MS = 10000,	/* a signal to srun explains what ranks do */
	UNTOLD_MS = 3000,	/* srun tells of a failure, and no agent does */
	TICK_MS = 20
};

bool ddp_attempt_named(const struct ddp_attempt *attempt)
{
	return attempt->decided_ns &&
	       (attempt->verdict.kind == DDP_VERDICT_RANK ||
		attempt->verdict.kind == DDP_VERDICT_NODE ||
		attempt->verdict.kind == DDP_VERDICT_HANG);
}

int ddp_attempt_code(const struct ddp_attempt *attempt)
{
	int worst = ddp_step_worst(&attempt->step);

	if (ddp_attempt_named(attempt))
		return ddp_verdict_code(&attempt->verdict, &attempt->step);
	if (attempt->struck)
		return attempt->untold_ns && worst == 0 ? 1 : worst;
	return ddp_child_code(&attempt->child);
}

/* srun, by others: then what the ranks do follows from that. */
static bool was_killed(const struct ddp_attempt *attempt)
{
	return attempt->child.ended && !attempt->struck &&
	       WIFSIGNALED(attempt->child.status);
}

bool ddp_attempt_unwanted(const struct ddp_attempt *attempt)
{
	return attempt->ended_by_user || was_killed(attempt) ||
	       ddp_child_was_told(&attempt->child) ||
	       ms(attempt->child.interrupted_ms) > attempt->failed_ns;
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

	if (attempt->failed_ns || attempt->over_ns || attempt->ended_ns ||
	    attempt->child.waits || attempt->relay.kept_ns)
		return TICK_MS;
	if (timer_ms >= 0 && timer_ms < DDP_AGENTS_PING_MS)
		return timer_ms;
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
	}
	ddp_child_pass(&attempt->child);
	free(fds);
}

static void lose_unlaunched(struct ddp_step *step, const char *name,
			    int64_t now_ns)
{
	struct ddp_wire wire = {
		.job_id = step->job_id, .world_size = step->world_size,
	};
	struct ddp_step_node *node;
	int index;

	/* Its tasks have started, or this was said before. */
	if (ddp_step_find_node(step, name) >= 0)
		return;
	snprintf(wire.node, sizeof(wire.node), "%s", name);
	index = ddp_step_add_node(step, &wire, now_ns);
	if (index < 0)
		return;
	node = &step->nodes[index];
	node->lost = node->unlaunched = step->failed = true;
	node->lost_ns = now_ns;
}

/* A node where srun says that it could not start tasks is lost. */
static void find_unlaunched(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_step *step = &attempt->step;
	unsigned int job_id, step_id;
	char *lines, *line, *save, name[DDP_WIRE_NODE_SIZE];

	if (!step->world_size || !attempt->relay.sieve.unlaunched.length)
		return;
	lines = ddp_text_finish(&attempt->relay.sieve.unlaunched);
	for (line = lines ? strtok_r(lines, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%u %u %255s", &job_id, &step_id, name) == 3 &&
		    job_id == step->job_id && step_id == step->step_id &&
		    !attempt->failed_ns)
			lose_unlaunched(step, name, now_ns);
	free(lines);
}

/* Whether no more can be known about who failed first. */
static bool is_clear(const struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t waited_ns = now_ns - attempt->failed_ns;

	if (attempt->step.ended == attempt->step.world_size ||
	    ddp_agents_open(&attempt->agents) == 0)
		return true;
	if (ddp_agents_silent(&attempt->agents))
		return waited_ns >= ms(DECIDE_MS);
	return waited_ns >= ms(ddp_verdict_wait_ms(&attempt->step));
}

static void decide(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_text text = { 0 };

	attempt->verdict = ddp_verdict_find(&attempt->step);
	attempt->ended_by_user |= ddp_cancel_explains(attempt,
						      &attempt->verdict);
	if (attempt->untold_ns)
		attempt->verdict.kind = DDP_VERDICT_NONE;
	else if (attempt->ended_by_user)
		attempt->verdict.kind = DDP_VERDICT_SIGNAL;
	attempt->decided_ns = now_ns;
	ddp_verdict_add(&text, &attempt->verdict, &attempt->step);
	ddp_relay_say(&attempt->relay, &text);
}

/* How many ended because of it is known when all have ended. */
static void say_others(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };

	if (attempt->told_others || !attempt->killed_ns ||
	    !ddp_attempt_named(attempt))
		return;
	ddp_verdict_add_others(&text, ddp_verdict_others(&attempt->verdict,
							 &attempt->step));
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

static void judge(struct ddp_attempt *attempt, int64_t now_ns)
{
	bool all = attempt->step.ended == attempt->step.world_size ||
		   ddp_agents_open(&attempt->agents) == 0;

	if (!attempt->step.failed)
		return;
	if (!attempt->failed_ns) {
		attempt->failed_ns = now_ns;
		attempt->told = was_told(attempt, now_ns);
		attempt->ended_by_user = attempt->told ||
					 was_killed(attempt);
		ddp_cancel_note(attempt, now_ns);
		ddp_relay_hold(&attempt->relay);
	}
	if (!attempt->decided_ns && is_clear(attempt, now_ns) &&
	    ddp_cancel_is_clear(attempt, now_ns))
		decide(attempt, now_ns);
	if (attempt->decided_ns && all)
		say_others(attempt);
	if (now_ns - attempt->failed_ns >= ms(HOLD_MS) ||
	    (attempt->decided_ns && all))
		ddp_relay_release(&attempt->relay);
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

/* Whether one of the ranks that have failed, as srun says, is not watched. */
static bool is_untold(const struct ddp_attempt *attempt)
{
	const struct ddp_text *failed = &attempt->relay.sieve.failed;
	const struct ddp_step *step = &attempt->step;
	char *list = failed->failed ? NULL :
		     strndup(failed->data, failed->length - 1);
	bool untold = false;
	uint32_t i;

	if (list && step->world_size == 0)
		untold = true;
	else if (list && ddp_ranks_check("srun", list, 0, NULL) == 0)
		for (i = 0; i < step->world_size && !untold; i++)
			untold = ddp_ranks_has(list, i) &&
				 !ddp_step_is_watched(step, i);
	free(list);
	return untold;
}

/*
 * With --ddp-grace Slurm leaves the end of the step to us; but of a rank on a
 * node that is not watched, srun alone tells that it has failed.
 */
static void find_untold(struct ddp_attempt *attempt, int64_t now_ns)
{
	int64_t said_ns = attempt->relay.failed_ns;
	struct ddp_text text = { 0 };

	if (attempt->untold_ns || !attempt->wish->grace_s || !said_ns ||
	    now_ns - said_ns < ms(UNTOLD_MS) || attempt->step.noticed ||
	    !is_untold(attempt))
		return;
	attempt->untold_ns = now_ns;
	ddp_text_add(&text, "slurm-ddp: a rank has failed on a node that is "
		     "not watched, and so the step ends; on such nodes there "
		     "is no --ddp-grace\n");
	ddp_relay_say(&attempt->relay, &text);
}

static void say_early(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->step;
	struct ddp_text text = { 0 };

	if (attempt->told_early || step->ended == 0 ||
	    step->ended == step->world_size || step->known < step->world_size ||
	    now_ns - step->end_ns < ms(EARLY_MS))
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

	if (!was_killed(attempt) || attempt->untold_ns)
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
		attempt->killed_ns = now_ns;
	}
}

static bool has_ended(const struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!attempt->ended_ns || (attempt->failed_ns && !attempt->decided_ns))
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

/* Where neither Slurm nor a user has said why the step ends. */
static void say_unknown(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };
	bool went_on = false;
	size_t i;

	if (ddp_attempt_named(attempt) || ddp_attempt_unwanted(attempt) ||
	    attempt->child.told_ms || attempt->relay.cancelled_ns ||
	    !WIFEXITED(attempt->child.status) || ddp_attempt_code(attempt) == 0)
		return;
	for (i = 0; i < attempt->agents.count; i++)
		went_on |= attempt->agents.all[i].warned;
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
		find_unlaunched(attempt, now_ns);
		ddp_watchdog_tick(attempt, now_ns);
		judge(attempt, now_ns);
		if (!attempt->failed_ns && attempt->step.known > 0)
			ddp_relay_delay(&attempt->relay, now_ns);
		if (!attempt->child.ended && !attempt->failed_ns)
			find_untold(attempt, now_ns);
		ddp_ending_tick(attempt, now_ns);
		give_notice(attempt);
		if (attempt->child.ended)
			end_left(attempt, now_ns);
		else if (!attempt->step.failed && !attempt->step.noticed)
			say_early(attempt, now_ns);
		if (!attempt->child.ended && !attempt->failed_ns)
			warn_of_left(attempt, now_ns);
	}
	say_others(attempt);
	if (!say_gone(attempt))
		say_unknown(attempt);
	ddp_relay_finish(&attempt->relay);
}

/* Each node has a connection. srun's own limit is that of its tasks, too. */
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
	attempt->relay.in = -1;
	attempt->agents.listener = wish->listener;
	attempt->agents.secret = secret;
	attempt->agents.step = &attempt->step;
	attempt->agents.relay = &attempt->relay;
	getrlimit(RLIMIT_NOFILE, &attempt->files);
	rc = ddp_child_start(&attempt->child,
			     wish->pty ? NULL : &attempt->relay.in);
	if (rc > 0) {
		raise_limit(attempt->files);
		watch(attempt);
	}
	return rc;
}

void ddp_attempt_clear(struct ddp_attempt *attempt)
{
	setrlimit(RLIMIT_NOFILE, &attempt->files);
	ddp_timer_end(&attempt->timer);
	ddp_relay_clear(&attempt->relay);
	ddp_child_clear(&attempt->child);
	ddp_agents_clear(&attempt->agents);
	ddp_step_clear(&attempt->step);
}
