/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does what follows from the facts of a step: says the verdict, and ends ranks and
 * srun. Agents kill what is left on their nodes, at once, where Slurm itself
 * would first wait for KillWait. srun then ends by itself, but not where a node or
 * its slurmstepd is gone, and sometimes not at all.
 */
#define _GNU_SOURCE
#include "supervisor/act.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/kernel.h"
#include "slurm/scontrol.h"
#include "util/file.h"
#include "util/program.h"
#include "verdict/decide.h"
#include "verdict/times.h"

/* ---- what is said */

/* How many ended because of it is known when all have ended. */
static void say_others(struct ddp_attempt *attempt)
{
	const struct ddp_facts *facts = &attempt->facts;
	struct ddp_text text = { 0 };

	if (attempt->act.told_others || !ddp_facts_named(facts) ||
	    (!facts->step.grace.over_ns && !facts->step.grace.began_ns))
		return;
	ddp_verdict_add_others(&text, &facts->verdict, &facts->step);
	ddp_relay_say(&attempt->relay, &text);
	attempt->act.told_others = true;
}

/*
 * An agent that is killed with its ranks leaves, too: then the step ends, though
 * a process that cannot be killed may hold it up for minutes.
 */
static void say_left(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_step *step = &facts->step;
	struct ddp_step_node *node;
	struct ddp_text text = { 0 };
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (!node->left || node->told ||
		    now_ns - node->left_ns < ms(DDP_LEFT_MS) ||
		    ddp_said_cancelled(&facts->said, node->left_ns))
			continue;
		node->told = true;
		ddp_text_add_quoted(&text, "slurm-ddp: node %s is not watched "
				    "any more, as its ddp-agent has ended; "
				    "the step goes on under Slurm's own rules",
				    node->name);
		ddp_text_add(&text, "\n");
	}
	if (text.length > 0)
		ddp_relay_say(&attempt->relay, &text);
}

static void say_early(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->facts.step;
	struct ddp_act *act = &attempt->act;
	struct ddp_text text = { 0 };

	if (act->told_early || step->ended == 0 ||
	    step->ended == step->world_size || step->known < step->world_size)
		return;
	if (!act->early_ns)
		act->early_ns = now_ns;
	if (now_ns - act->early_ns < ms(DDP_EARLY_MS))
		return;
	act->told_early = true;
	ddp_verdict_add_early(&text, step);
	ddp_relay_say(&attempt->relay, &text);
}

/*
 * A rank that ends before it leaves MPI or PMIx makes Slurm's mpi/pmix kill the
 * step, and by its exit code nobody has failed. Returns whether that is so.
 */
static bool say_gone(struct ddp_attempt *attempt)
{
	const struct ddp_facts *facts = &attempt->facts;
	struct ddp_text text = { 0 };

	if (ddp_facts_named(facts) || attempt->act.told_early || facts->told ||
	    facts->unwatched_ns || facts->step.noticed ||
	    ddp_facts_srun_code(facts) == 0)
		return false;
	ddp_verdict_add_gone(&text, &facts->step);
	if (text.length == 0)
		return false;
	ddp_relay_say(&attempt->relay, &text);
	return true;
}

/* Returns true if the step seems to have failed, and nobody was told why. */
static bool is_unknown(const struct ddp_facts *facts)
{
	return !ddp_facts_named(facts) && !facts->hidden &&
	       !facts->unwatched_ns && !facts->step.noticed &&
	       facts->verdict.kind != DDP_VERDICT_SAVED && !facts->told_ns &&
	       !facts->interrupted_ns && WIFEXITED(facts->status) &&
	       ddp_facts_code(facts) != 0;
}

/*
 * Neither Slurm nor a user has said why the step ends. Where Slurm says that it
 * is cancelled, it can have meant what srun had done.
 */
static void say_unknown(struct ddp_attempt *attempt)
{
	const struct ddp_facts *facts = &attempt->facts;
	struct ddp_text text = { 0 };

	if (is_unknown(facts) && !ddp_attempt_unwanted(attempt) &&
	    !facts->said.cancelled_ns)
		ddp_verdict_add_unknown(&text, &facts->step);
	ddp_relay_say(&attempt->relay, &text);
}

/* Nobody else says so; Slurm's shepherd of srun then ends the step. */
static void say_killed(struct ddp_attempt *attempt)
{
	struct ddp_text text = { 0 };

	if (!ddp_facts_was_killed(&attempt->facts) ||
	    attempt->facts.unwatched_ns || attempt->act.told_killed)
		return;
	attempt->act.told_killed = true;
	ddp_text_add(&text, "slurm-ddp: srun itself was killed by signal %d, "
		     "and so the step ends\n", WTERMSIG(attempt->facts.status));
	ddp_relay_say(&attempt->relay, &text);
}

/* ---- the verdict */

/* Runs in a helper, and returns 0 if the job simply runs. Tasks of its array may
 * follow it. */
static int ask_job(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	char id[16], *answer;
	bool runs;

	/* A user has nothing from its complaints. */
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	snprintf(id, sizeof(id), "%u", attempt->facts.step.job_id);
	answer = ddp_squeue_show(id, "-o", "%A %T");
	runs = answer && strcmp(answer, "RUNNING") == 0;
	free(answer);
	return runs ? 0 : 1;
}

/* Ask slurmctld, once, and take its answer, or that it gives none. */
static void ask_slurmctld(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_child *child = &attempt->child;
	int64_t limit_ns = ms(facts->ended_ns ? DDP_LATE_ANSWER_MS :
			      DDP_ANSWER_MS);

	if (facts->job == DDP_JOB_UNASKED) {
		facts->job = DDP_JOB_ASKED;
		facts->asked_ns = now_ns;
		ddp_child_help(child, ask_job, attempt);
	}
	if (facts->job != DDP_JOB_ASKED ||
	    (child->helper && now_ns - facts->asked_ns < limit_ns))
		return;
	ddp_child_end(&child->helper);
	facts->job = child->answer == 0 ? DDP_JOB_RUNS : DDP_JOB_UNKNOWN;
	child->answer = -1;
}

static void take_decision(struct ddp_attempt *attempt,
			  const struct ddp_decision *decision, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_text text = { 0 };

	facts->verdict = decision->verdict;
	facts->row = decision->row;
	facts->by_user = decision->by_user;
	facts->hidden = decision->kind == DDP_DECISION_HIDDEN;
	facts->decided_ns = now_ns;
	if (facts->hidden)
		ddp_verdict_add_hidden(&text, &facts->step);
	ddp_verdict_add(&text, &facts->verdict, &facts->step);
	ddp_relay_say(&attempt->relay, &text);
}

static void decide(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_decision decision = ddp_decide(&attempt->facts, now_ns);

	if (decision.kind == DDP_DECISION_ASK ||
	    attempt->facts.job == DDP_JOB_ASKED) {
		ask_slurmctld(attempt, now_ns);
		decision = ddp_decide(&attempt->facts, now_ns);
	}
	if (decision.kind != DDP_DECISION_WAIT)
		take_decision(attempt, &decision, now_ns);
}

static void judge(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;

	if (!facts->step.failed) {
		if (ddp_decide_forgets(facts, now_ns))
			ddp_said_forget(&facts->said);
		return;
	}
	if (!facts->failed_ns) {
		ddp_facts_fail(facts, now_ns);
		ddp_agents_tell(&attempt->agents, DDP_WIRE_ERRORS, 0);
		attempt->relay.sieve.holds = true;
	}
	if (!facts->decided_ns)
		decide(attempt, now_ns);
	if (facts->decided_ns && ddp_facts_all_told(facts))
		say_others(attempt);
	if (!ddp_decide_holds(facts, now_ns))
		ddp_relay_release(&attempt->relay);
}

/* Ends the step for ranks that failed, or are lacking, as srun alone says. */
static void end_unwatched(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_text text = { 0 };
	uint32_t rank;

	if (facts->unwatched_ns || facts->step.noticed || facts->told_ns ||
	    ddp_said_cancelled(&facts->said, now_ns))
		return;
	if (facts->kills && ddp_said_lacks_ranks(facts, now_ns))
		ddp_text_add(&text, "slurm-ddp: some ranks could not be "
			     "started, as srun says, and so the step ends\n");
	else if (facts->alone && ddp_said_find_unwatched(facts, now_ns, &rank))
		ddp_text_add(&text, "slurm-ddp: rank %u has failed, as srun "
			     "says, on a node that is not watched, and so the "
			     "step ends%s\n", rank, attempt->wish->grace_s ?
			     "; on such nodes there is no --ddp-grace" : "");
	else
		return;
	facts->unwatched_ns = now_ns;
	ddp_relay_say(&attempt->relay, &text);
}

/* ---- the end of ranks and srun */

static void kill_ranks(struct ddp_attempt *attempt, int64_t now_ns)
{
	ddp_agents_tell(&attempt->agents, DDP_WIRE_KILL, 0);
	attempt->facts.step.grace.over_ns = now_ns;
	ddp_facts_enter(&attempt->facts, DDP_PHASE_ENDING, now_ns);
}

static void end_ranks(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_step_grace *grace = &attempt->facts.step.grace;
	int64_t unwatched_ns = attempt->facts.unwatched_ns;
	int64_t grace_ns = ms(1000 * (int64_t)attempt->wish->grace_s);

	if (grace->over_ns)
		return;
	if (unwatched_ns && ddp_step_count_open(&attempt->facts.step) == 0)
		grace_ns = 0;
	if (grace_ns && !grace->began_ns) {
		ddp_agents_tell(&attempt->agents, DDP_WIRE_SIGNAL, SIGTERM);
		grace->seconds = attempt->wish->grace_s;
		grace->began_ns = now_ns;
		ddp_facts_enter(&attempt->facts, DDP_PHASE_ENDING, now_ns);
	}
	if (grace_ns && now_ns - grace->began_ns < grace_ns)
		return;
	/* Ranks without an agent srun itself can end. */
	if (unwatched_ns && !attempt->facts.ended_ns)
		kill(attempt->child.pid, SIGTERM);
	kill_ranks(attempt, now_ns);
}

/* Runs in a helper. A job that is srun's own has nothing left to wait for. */
static int cancel(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	const struct ddp_step *step = &attempt->facts.step;
	char id[32];
	const char *argv[] = { "scancel", "-Q", id, NULL };

	/* srun itself was told to end a step that is not known. */
	if (step->world_size == 0 && !attempt->child.launched_ms)
		return 0;
	if (attempt->wish->own_job)
		snprintf(id, sizeof(id), "%u", step->job_id);
	else
		snprintf(id, sizeof(id), "%u.%u", step->job_id, step->step_id);
	free(ddp_program_read(argv, STDERR_FILENO));
	return 0;
}

/* Runs in a helper, and returns 0 if Slurm knows the step no more: squeue then
 * prints its heading alone. */
static int ask_step(const void *argument)
{
	const struct ddp_attempt *attempt = argument;
	char id[32], *answer, *rows;
	const char *argv[] = { "squeue", "-s", id, "-o", "%i", NULL };
	bool gone;

	snprintf(id, sizeof(id), "%u.%u", attempt->facts.step.job_id,
		 attempt->facts.step.step_id);
	answer = ddp_program_read(argv, -1);
	rows = answer ? strchr(answer, '\n') : NULL;
	gone = rows && !rows[1];
	free(answer);
	return gone ? 0 : 1;
}

static void strike(struct ddp_attempt *attempt)
{
	if (!attempt->facts.struck)
		kill(attempt->child.pid, SIGKILL);
	attempt->facts.struck = true;
}

/* Returns true if srun misses the ends of ranks that cannot end or tell. */
static bool misses_ends(const struct ddp_step *step)
{
	const struct ddp_step_node *node;
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (node->open || node->orphaned ||
		    (node->lost && (!node->unlaunched || node->awaited)))
			return true;
	}
	return false;
}

static void end_failed(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	bool misses = misses_ends(&facts->step);

	if (!facts->scancelled_ns &&
	    (misses || now_ns - attempt->act.over_ns >= ms(DDP_SRUN_ENDS_MS))) {
		/* It takes the place of a helper that asks. */
		if (facts->job == DDP_JOB_ASKED)
			facts->job = DDP_JOB_UNKNOWN;
		ddp_child_help(&attempt->child, cancel, attempt);
		facts->scancelled_ns = now_ns;
	}
	if (facts->scancelled_ns && now_ns - facts->scancelled_ns >=
	    ms(misses ? DDP_SRUN_MISSES_MS : DDP_SRUN_ENDS_MS))
		strike(attempt);
}

/* A task epilog, or that of srun, may take long; then Slurm has the step. */
static void end_well(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_child *child = &attempt->child;
	struct ddp_act *act = &attempt->act;

	if (act->epilog_ns && child->answer == 0) {
		strike(attempt);
	} else if (!child->helper &&
		   now_ns - act->over_ns >= ms(DDP_EPILOG_MS) &&
		   now_ns - act->epilog_ns >= ms(DDP_EPILOG_MS)) {
		ddp_child_help(child, ask_step, attempt);
		act->epilog_ns = now_ns;
	}
}

bool ddp_act_is_writing(const struct ddp_attempt *attempt)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return attempt->relay.out.length > 0 || poll(&out, 1, 0) == 0;
}

/* srun may still have much to write, though whoever reads it is fast. */
static bool has_written(struct ddp_attempt *attempt)
{
	char *text = ddp_file_read_of(attempt->child.pid, "io");
	uint64_t before = attempt->act.written;

	attempt->act.written = ddp_kernel_read_io(text, "wchar");
	free(text);
	return attempt->act.written != before;
}

/* Returns true if the ranks have ended, or have had the time for it. */
static bool are_ranks_over(const struct ddp_facts *facts, int64_t now_ns)
{
	int64_t killed_ns = facts->step.grace.over_ns;

	if (!killed_ns)
		return ddp_step_is_over(&facts->step);
	return ddp_step_count_open(&facts->step) == 0 ||
	       now_ns - killed_ns >= ms(DDP_KILL_MS);
}

static void end_srun(struct ddp_attempt *attempt, int64_t now_ns)
{
	if (!are_ranks_over(&attempt->facts, now_ns))
		return;
	if (!attempt->act.over_ns || ddp_act_is_writing(attempt) ||
	    has_written(attempt))
		attempt->act.over_ns = now_ns;
	if (attempt->facts.step.grace.over_ns)
		end_failed(attempt, now_ns);
	else
		end_well(attempt, now_ns);
}

/* srun has ended. What it has left an agent ends. */
static void end_left(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_facts *facts = &attempt->facts;

	say_killed(attempt);
	if (!facts->step.grace.over_ns &&
	    (WIFSIGNALED(facts->status) ||
	     now_ns - facts->ended_ns >= ms(DDP_LAST_MS)))
		kill_ranks(attempt, now_ns);
}

/* ---- in turn */

/* The signal before the job's end, from when there are ranks to get it. */
static void give_notice(struct ddp_attempt *attempt)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_text said = { 0 };
	int signal;

	if (!attempt->act.noticing && facts->step.world_size > 0) {
		ddp_timer_begin(&attempt->timer, &attempt->wish->notice,
				facts->step.job_id);
		facts->step.saves = attempt->wish->notice.number;
		attempt->act.noticing = true;
	}
	if (facts->failed_ns || facts->ended_ns)
		ddp_timer_end(&attempt->timer);
	signal = ddp_timer_run(&attempt->timer, &said);
	if (said.length > 0)
		ddp_relay_say(&attempt->relay, &said);
	if (signal) {
		ddp_agents_tell(&attempt->agents, DDP_WIRE_SIGNAL, signal);
		facts->step.noticed = true;
	}
}

void ddp_act_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;
	bool fails;

	judge(attempt, now_ns);
	fails = facts->failed_ns != 0;
	if (!fails && facts->step.known > 0)
		ddp_relay_delay(&attempt->relay, now_ns);
	if (!facts->ended_ns && !fails)
		end_unwatched(attempt, now_ns);
	if (ddp_decide_ends(facts, now_ns))
		end_ranks(attempt, now_ns);
	if (!facts->ended_ns)
		end_srun(attempt, now_ns);
	give_notice(attempt);
	if (facts->ended_ns)
		end_left(attempt, now_ns);
	else if (!facts->step.failed && !facts->step.noticed)
		say_early(attempt, now_ns);
	if (!facts->ended_ns && !fails && !facts->unwatched_ns &&
	    !facts->told_ns)
		say_left(attempt, now_ns);
}

bool ddp_act_is_over(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_facts *facts = &attempt->facts;

	if (!facts->ended_ns ||
	    (facts->failed_ns && !facts->decided_ns))
		return false;
	if (ddp_abort_is_likely(facts)) {
		ask_slurmctld(attempt, now_ns);
		if (facts->job == DDP_JOB_ASKED)
			return false;
	}
	if (facts->step.grace.over_ns && attempt->child.helper &&
	    now_ns - facts->ended_ns < ms(DDP_SCANCEL_MS))
		return false;
	return ddp_step_count_open(&facts->step) == 0 || attempt->act.over_ns ||
	       now_ns - facts->ended_ns >= ms(2 * DDP_LAST_MS);
}

/* Waits are over: what has not come by now does not come. */
static void decide_at_last(struct ddp_attempt *attempt)
{
	struct ddp_facts *facts = &attempt->facts;
	struct ddp_decision decision = ddp_decide(facts, INT64_MAX);

	take_decision(attempt, &decision, facts->ended_ns);
}

void ddp_act_end(struct ddp_attempt *attempt)
{
	struct ddp_facts *facts = &attempt->facts;

	ddp_child_end(&attempt->child.helper);
	if (ddp_abort_take(facts))
		decide_at_last(attempt);
	/* Ranks that have saved after --ddp-signal have not failed. */
	if (!facts->decided_ns &&
	    ddp_verdict_find(&facts->step).kind == DDP_VERDICT_SAVED)
		decide_at_last(attempt);
	say_others(attempt);
	if (!say_gone(attempt))
		say_unknown(attempt);
	ddp_relay_finish(&attempt->relay);
}
