/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table decides about a step that has failed: its first row that holds says
 * whether to wait, and for how long, or who is named.
 *
 * The candidate is the first failure by what agents tell (verdict.c). Others may
 * have ended the step, so that what its ranks then do is no failure: a user, or
 * Slurm for one. slurmstepd says so, but says the same in two other cases, and
 * may be faster than the agent of the rank that is to blame.
 *
 * srun has the step killed as a rank has failed. Then it has said so before, and
 * which rank that was (said.c).
 *
 * mpi/pmix has it killed as a rank has ended. Up to Slurm 25.11 that is by
 * SIGKILL, which agents do not survive, and by which no rank ends with an exit
 * code. A job that is cancelled may get SIGTERM just before; then slurmctld
 * knows it. Since Slurm 26.05 it is by SIGTERM, and by SIGKILL after KillWait.
 * Agents survive SIGTERM, and tell of the ends (verdict.c).
 */
#define _GNU_SOURCE
#include "verdict/decide.h"

#include <sys/wait.h>

#include "verdict/execve.h"
#include "verdict/times.h"

/* The facts, and what several rows ask of them. */
struct view {
	const struct ddp_facts *facts;
	const struct ddp_step *step;
	const struct ddp_said *said;
	struct ddp_verdict first;	/* the candidate */
	int64_t now_ns;
	bool cancelled, aborted;	/* Slurm has said so, and not for a rank
					 * of which srun has told before */
	bool sent;		/* a signal that others send has ended it */
	bool own;		/* it failed by itself, whatever else happened */
};

/* ---- evidence: what a row needs */

static bool always(const struct view *view)
{
	(void)view;
	return true;
}

static bool is_unreachable(const struct view *view)
{
	uint32_t i;

	for (i = 0; i < view->step->node_count; i++)
		if (view->step->nodes[i].unreachable)
			return true;
	return false;
}

/*
 * Returns true if an agent may have told less than it had to when the failure
 * came. A silent one has nothing to say of a rank that failed by itself.
 */
static bool is_behind(const struct view *view)
{
	const struct ddp_step_node *node;
	uint32_t i;

	for (i = 0; i < view->step->node_count; i++) {
		node = &view->step->nodes[i];
		if (node->open && node->ended < node->count &&
		    node->answered_ns < view->facts->failed_ns &&
		    !(node->silent && view->own))
			return true;
	}
	return false;
}

static bool had_error(const struct view *view)
{
	return ddp_verdict_awaits_error(&view->first, view->step);
}

static bool is_sent(const struct view *view)
{
	return view->sent;
}

/*
 * Returns true if slurmstepd could not execute the command. Newer kernels (6.18)
 * show no user how such a process has ended. The agent knows of the others of its
 * node when slurmstepd says so, 200 ms after the first or later.
 */
static bool is_unexecuted(const struct view *view)
{
	return view->first.kind == DDP_VERDICT_RANK &&
	       ddp_execve_is(view->step->ranks[view->first.rank].cause);
}

/* Whether others than srun have ended the step, as far as is known. */
static bool is_others(const struct ddp_facts *facts)
{
	return facts->said.ends == DDP_SAID_OTHERS && !facts->scancelled_ns;
}

/*
 * The same, where the end can be why this rank got a signal. mpi/pmix has a step
 * killed for a rank, but later.
 */
static bool is_before(const struct ddp_facts *facts)
{
	return is_others(facts) && facts->said.ends_ns - facts->failed_ns <
				   ms(DDP_SENT_MS);
}

/* The rank's agent may be faster than what slurmstepd says. */
static bool may_others_end(const struct view *view)
{
	return !view->facts->cancelled && !view->facts->aborted &&
	       is_before(view->facts) && view->sent &&
	       !view->facts->ended_ns && !ddp_step_is_over(view->step);
}

/* srun ends the step, and for a rank of which no agent has told yet. */
static bool may_reason_come(const struct view *view)
{
	return (view->cancelled || view->aborted) &&
	       view->said->ends == DDP_SAID_SRUN && !view->own &&
	       ddp_step_count_open(view->step) > 0;
}

/*
 * Slurm has killed agents, and a rank has ended by a code of its own: that may be
 * why, or it was the time that a cancelled job leaves its ranks.
 */
static bool is_doubtful(const struct view *view)
{
	uint32_t i = 0;

	while (i < view->step->node_count && !view->step->nodes[i].left)
		i++;
	return view->cancelled && i < view->step->node_count &&
	       view->first.kind == DDP_VERDICT_RANK && !view->own &&
	       !view->sent;
}

static bool is_unasked(const struct view *view)
{
	return is_doubtful(view) && view->facts->job == DDP_JOB_UNASKED;
}

static bool is_asked(const struct view *view)
{
	return is_doubtful(view) && view->facts->job == DDP_JOB_ASKED;
}

/*
 * The agent of the rank for which the step was ended may have been slow; or srun
 * has ended, and left ranks that were killed for it.
 */
static bool came_of_our_end(const struct view *view)
{
	int64_t killed_ns = view->step->grace.over_ns;

	if (view->facts->unwatched_ns)
		return view->first.at_ns > view->facts->unwatched_ns;
	/* Clocks are known to some ms. */
	return killed_ns &&
	       view->first.at_ns > killed_ns - ms(DDP_TOGETHER_MS);
}

static bool is_saved(const struct view *view)
{
	return view->first.kind == DDP_VERDICT_SAVED;
}

static bool is_by_user(const struct view *view)
{
	return view->facts->by_user;
}

static bool was_cancelled(const struct view *view)
{
	return view->cancelled && !view->own &&
	       !(is_doubtful(view) && view->facts->job == DDP_JOB_RUNS);
}

static bool was_aborted(const struct view *view)
{
	return view->aborted && view->sent;
}

/* A rank of a silent agent may have failed before one that failed for others. */
static bool may_be_later(const struct view *view)
{
	return view->first.kind == DDP_VERDICT_RANK && !view->own &&
	       ddp_step_find_silent(view->step);
}

/* ---- the table */

static const struct row {
	const char *name;	/* NULL: that of the candidate's kind */
	bool (*holds)(const struct view *view);
	enum ddp_decision_kind kind;
	int wait_ms;	/* WAIT: at most so long since the failure was heard of;
			 * 0: until it does not hold any more */
	bool news;	/* pointless where all is told */
} rows[] = {
	/* news: an earlier failure may yet be told */
	{ "a node may be lost", is_unreachable,
	  DDP_DECISION_WAIT, DDP_NODE_MS, true },
	{ "a rank that runs had an error before", had_error,
	  DDP_DECISION_WAIT, DDP_ERROR_MS, true },
	{ "an agent has not answered since", is_behind,
	  DDP_DECISION_WAIT, DDP_FENCE_MS, true },
	{ "others may have been killed, too", is_sent,
	  DDP_DECISION_WAIT, DDP_SENT_MS, true },
	{ "others may not have started, either", is_unexecuted,
	  DDP_DECISION_WAIT, DDP_SENT_MS, true },
	{ "others may fail in the same way", always,
	  DDP_DECISION_WAIT, DDP_ALIKE_MS, true },
	/* who has ended the step may yet be known */
	{ "srun may end, as others ended the step", may_others_end,
	  DDP_DECISION_WAIT, DDP_OTHERS_END_MS, false },
	{ "srun's reason may come", may_reason_come,
	  DDP_DECISION_WAIT, DDP_ANSWER_MS, false },
	{ "the job may be cancelled", is_unasked, DDP_DECISION_ASK, 0, false },
	{ "slurmctld is asked", is_asked, DDP_DECISION_WAIT, 0, false },
	/* who is named */
	{ "it followed from our own end of the step", came_of_our_end,
	  DDP_DECISION_NOBODY, 0, false },
	{ "all have saved", is_saved, DDP_DECISION_CANDIDATE, 0, false },
	{ "srun was told to end, or killed", is_by_user,
	  DDP_DECISION_USER, 0, false },
	{ "the step was cancelled", was_cancelled,
	  DDP_DECISION_USER, 0, false },
	{ "srun was aborted", was_aborted, DDP_DECISION_USER, 0, false },
	{ "another rank may be the first", may_be_later,
	  DDP_DECISION_HIDDEN, 0, false },
	{ NULL, always, DDP_DECISION_CANDIDATE, 0, false },
};

static const char *const candidates[DDP_VERDICT_SAVED + 1] = {
	[DDP_VERDICT_NONE] = "who was first is in doubt",
	[DDP_VERDICT_RANK] = "agents tell of no earlier failure",
	[DDP_VERDICT_NODE] = "the node was lost before a rank failed",
	[DDP_VERDICT_SIGNAL] = "one signal has ended all ranks",
	[DDP_VERDICT_HANG] = "no rank makes progress",
};

/*
 * Returns true if those who have ended the step are ranks that call MPI_Abort as
 * they miss one, and not a user. With mpi/pmix the code of that call is srun's
 * own; else that of a rank is.
 */
static bool has_aborted(const struct ddp_facts *facts)
{
	const struct ddp_step *step = &facts->step;
	int code = ddp_facts_srun_code(facts);
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended &&
		    ddp_step_code(step->ranks[i].status) == code)
			return false;
	return facts->ended_ns != 0;
}

/*
 * Returns true if SIGKILL has ended the candidate, and others ended by a code after
 * that: who cancels a step leaves no rank the time for one. They have missed it, as
 * in MPI_Init.
 */
static bool was_missed(const struct view *view)
{
	const struct ddp_step *step = view->step;
	uint32_t i;

	if (!ddp_step_was_killed(step->ranks[view->first.rank].status))
		return false;
	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended && WIFEXITED(step->ranks[i].status) &&
		    WEXITSTATUS(step->ranks[i].status) != 0 &&
		    ddp_step_end_ns(step, i) > view->first.at_ns)
			return true;
	return false;
}

static struct view look(const struct ddp_facts *facts, int64_t now_ns)
{
	struct view view = {
		.facts = facts, .step = &facts->step, .said = &facts->said,
		.first = ddp_verdict_find(&facts->step), .now_ns = now_ns,
		.cancelled = facts->cancelled, .aborted = facts->aborted,
	};

	view.sent = ddp_verdict_is_sent(&view.first, view.step);
	view.own = ddp_verdict_is_own(&view.first, view.step);
	if (!view.cancelled && !view.aborted)
		view.cancelled = is_before(facts) && view.sent &&
				 !has_aborted(facts) && !was_missed(&view);
	else if (view.said->ends == DDP_SAID_SRUN &&
		 ddp_said_is_reason(facts, &view.first))
		view.cancelled = view.aborted = false;
	return view;
}

static bool holds(const struct row *row, const struct view *view, bool told)
{
	int64_t waited_ns = view->now_ns - view->facts->failed_ns;

	return !(row->news && told) &&
	       !(row->wait_ms && waited_ns >= ms(row->wait_ms)) &&
	       row->holds(view);
}

struct ddp_decision ddp_decide(const struct ddp_facts *facts, int64_t now_ns)
{
	const struct view view = look(facts, now_ns);
	bool told = ddp_facts_all_told(facts);
	struct ddp_decision decision = {
		.verdict = view.first,
		.by_user = facts->by_user || was_cancelled(&view) ||
			   was_aborted(&view),
	};
	const struct row *row = rows;

	while (!holds(row, &view, told))
		row++;
	decision.kind = row->kind;
	decision.row = row->name ? row->name : candidates[view.first.kind];
	if (row->kind == DDP_DECISION_USER)
		decision.verdict.kind = DDP_VERDICT_SIGNAL;
	else if (row->kind != DDP_DECISION_CANDIDATE)
		decision.verdict.kind = DDP_VERDICT_NONE;
	return decision;
}

bool ddp_decide_forgets(const struct ddp_facts *facts, int64_t now_ns)
{
	const struct ddp_step *step = &facts->step;
	const struct ddp_said *said = &facts->said;
	uint32_t i = 0;

	if (!said->last_ns || said->ends == DDP_SAID_SRUN ||
	    ddp_said_is_recent(said->cancelled_ns, now_ns))
		return false;
	while (i < step->world_size && ddp_step_denies(step, i, said->last_ns))
		i++;
	return step->world_size > 0 && i == step->world_size;
}

bool ddp_decide_holds(const struct ddp_facts *facts, int64_t now_ns)
{
	int64_t waited_ns = now_ns - facts->failed_ns;
	struct view view;

	if (facts->decided_ns && ddp_facts_all_told(facts))
		return false;
	if (facts->decided_ns || waited_ns < ms(DDP_HOLD_MS))
		return waited_ns < ms(DDP_HOLD_MS);
	view = look(facts, now_ns);
	return (waited_ns < ms(DDP_ERROR_MS) && had_error(&view)) ||
	       (waited_ns < ms(DDP_FENCE_MS) && is_behind(&view));
}

/*
 * Also where a signal to srun explains the failure and nobody is named: srun may
 * have taken the signal for a question, and go on. Where Slurm itself cancels the
 * step, it gives the ranks a time of its own; if it then has not ended where we
 * alone end steps, that was said of another.
 */
bool ddp_decide_ends(const struct ddp_facts *facts, int64_t now_ns)
{
	bool failed = facts->decided_ns &&
		      facts->verdict.kind != DDP_VERDICT_SAVED;

	return facts->unwatched_ns ||
	       (failed && facts->verdict.kind == DDP_VERDICT_HANG) ||
	       (facts->kills && failed &&
		(ddp_facts_named(facts) || facts->hidden || facts->told)) ||
	       (facts->alone && failed &&
		!ddp_said_cancelled(&facts->said, now_ns));
}

/* ---- MPI_Abort
 *
 * Where a rank calls it, mpi/pmix has the whole step killed, up to Slurm 25.11
 * mostly before an agent could tell of that rank; and slurmstepd says the same
 * as of scancel. But Open MPI has said it before, and srun ends with the code
 * of the call, and not with that of a signal, as it does where ranks are killed
 * (Slurm's srun/srun.c and mpi/pmix/pmixp_agent.c).
 */

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

/* Whether agents of ranks that had not ended were killed by that, too. */
static bool are_agents_killed(const struct ddp_step *step, int64_t at_ns)
{
	const struct ddp_step_node *node;
	const struct ddp_step_rank *rank;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		node = &step->nodes[rank->node];
		if (rank->known && !rank->ended && node->left &&
		    node->left_ns - at_ns > -ms(DDP_ABORT_BEFORE_MS) &&
		    node->left_ns - at_ns < ms(DDP_ABORT_MS))
			return true;
	}
	return false;
}

/* Whether this rank's end is not known, or can be that of the call. */
static bool may_have_called(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return of->known && (!of->ended || ddp_step_was_killed(of->status));
}

/* The code of the call; 0: srun has ended in another way. */
static int find_abort_code(const struct ddp_facts *facts)
{
	enum { SIGNALS = 128, SIGNALS_END = 192 };	/* a shell's codes */
	int code = facts->ended_ns ? ddp_facts_srun_code(facts) : 0;

	return code > SIGNALS && code <= SIGNALS_END ? 0 : code;
}

/* Whether a user or we ourselves have ended it. */
static bool was_ended(const struct ddp_facts *facts)
{
	int64_t killed_ns = facts->step.grace.over_ns;

	return facts->scancelled_ns || facts->unwatched_ns || facts->told ||
	       (killed_ns && killed_ns < facts->ended_ns) || facts->told_ns ||
	       (facts->interrupted_ns &&
		facts->said.aborter_ns - facts->interrupted_ns <
		ms(DDP_ABORT_MS));
}

bool ddp_abort_is_likely(const struct ddp_facts *facts)
{
	const struct ddp_step *step = &facts->step;
	const struct ddp_said *said = &facts->said;

	return said->aborter_ns && said->aborter < step->world_size &&
	       may_have_called(step, said->aborter) &&
	       find_abort_code(facts) && !ddp_facts_named(facts) &&
	       !was_ended(facts) && !has_other_failure(step) &&
	       are_agents_killed(step, said->aborter_ns);
}

bool ddp_abort_take(struct ddp_facts *facts)
{
	const struct ddp_said *said = &facts->said;

	if (!ddp_abort_is_likely(facts) || facts->job != DDP_JOB_RUNS)
		return false;
	ddp_facts_fail(facts, said->aborter_ns);
	facts->cancelled = facts->aborted = facts->by_user = false;
	ddp_step_add_abort(&facts->step, said->aborter, find_abort_code(facts),
			   "MPI_Abort", said->aborter_ns);
	return true;
}

/* ---- users */

/* Returns true if Slurm's word that the step ends came after the verdict. */
static bool was_late(const struct ddp_facts *facts)
{
	return is_others(facts) && !has_aborted(facts) &&
	       ddp_verdict_is_sent(&facts->verdict, &facts->step);
}

bool ddp_facts_unwanted(const struct ddp_facts *facts)
{
	return facts->by_user || ddp_facts_was_killed(facts) ||
	       facts->told_ns || was_late(facts) ||
	       facts->interrupted_ns > facts->failed_ns;
}
