/* SPDX-License-Identifier: BSD-3-Clause */
/* Who failed first. */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "layout/tasks.h"
#include "verdict/hang.h"
#include "verdict/who.h"

/* Slurm ends others 200 ms after a rank or later: as_root.c holds it up. */
enum {
	TOGETHER_NS = 150000000,
	AT_ONCE_NS = 2000000,	/* in which Slurm kills all of a node */
	SOON_NS = 500000000	/* the same, on a machine that is too busy; and
				 * in which the kernel ends a rank */
};

static bool has_failed(const struct ddp_step_rank *rank)
{
	return rank->ended && rank->status != 0 && !rank->answered;
}

/* Of several at the same time, the lowest rank. */
static void find_rank(const struct ddp_step *step, struct ddp_verdict *first)
{
	uint32_t i;
	int64_t at_ns;

	for (i = 0; i < step->world_size; i++) {
		if (!has_failed(&step->ranks[i]))
			continue;
		at_ns = ddp_step_end_ns(step, i);
		if (first->kind != DDP_VERDICT_NONE && at_ns >= first->at_ns)
			continue;
		first->kind = DDP_VERDICT_RANK;
		first->rank = i;
		first->node = step->ranks[i].node;
		first->at_ns = at_ns;
	}
}

/* A node's loss is the cause of what happens at the same time. */
static void find_node(const struct ddp_step *step, struct ddp_verdict *first)
{
	const struct ddp_step_node *node;
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if ((!node->lost && !node->orphaned) ||
		    (first->kind != DDP_VERDICT_NONE &&
		     node->lost_ns > first->at_ns))
			continue;
		first->kind = DDP_VERDICT_NODE;
		first->node = i;
		first->at_ns = node->lost_ns;
	}
}

/* A signal that is sent to a program. Others it raises by its own fault. */
static bool is_sent(int signal)
{
	switch (signal) {
	case SIGABRT: case SIGBUS: case SIGFPE: case SIGILL: case SIGSEGV:
	case SIGSYS: case SIGTRAP:
		return false;
	default:
		return true;
	}
}

/*
 * Whether all ranks were killed by one signal at one time: by scancel, or at
 * the time limit. Of a single rank SIGTERM tells, as others send SIGKILL too.
 */
static bool was_signalled(const struct ddp_step *step, int64_t first_ns)
{
	uint32_t status = step->ranks[0].status, i;

	if (!WIFSIGNALED(status) || !is_sent(WTERMSIG(status)) ||
	    (step->world_size == 1 && WTERMSIG(status) != SIGTERM))
		return false;
	for (i = 0; i < step->world_size; i++)
		if (!step->ranks[i].ended || step->ranks[i].cause ||
		    step->ranks[i].message ||
		    WTERMSIG(step->ranks[i].status) != WTERMSIG(status) ||
		    ddp_step_end_ns(step, i) - first_ns > TOGETHER_NS)
			return false;
	return true;
}

/*
 * Whether there were ranks whose end nobody would have told. Where Slurm kills
 * a step with its agents, one of them may just have told of a rank before. A
 * rank that ended well is a reason for Slurm to do so.
 */
static bool has_unwatched(const struct ddp_step *step, int64_t seen_ns)
{
	const struct ddp_step_node *node;
	int64_t at_once_ns = AT_ONCE_NS;
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended && step->ranks[i].status == 0)
			at_once_ns = SOON_NS;
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (node->silent ||
		    (node->left && node->left_ns - seen_ns < at_once_ns))
			return true;
	}
	return false;
}

/*
 * Whether a rank that lived when this one was killed has lived on, or was ended
 * otherwise, and later: then no SIGKILL of Slurm's has ended both.
 */
static bool was_outlived(const struct ddp_step *step, uint32_t rank,
			 uint32_t other)
{
	return !step->ranks[other].ended ||
	       (!ddp_step_was_killed(step->ranks[other].status) &&
		ddp_step_end_ns(step, other) >
		ddp_step_end_ns(step, rank) + TOGETHER_NS);
}

/*
 * Whether it was killed alone, as far as others tell: those of its node, or if
 * it was the only one there, those of others, where Slurm may be later.
 */
static bool was_killed_alone(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank], *other;
	bool near = false, far = false, far_lives = false;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		other = &step->ranks[i];
		if (i == rank || !other->known ||
		    (other->ended && ddp_step_end_ns(step, i) <
				     ddp_step_end_ns(step, rank)))
			continue;
		if (other->node != of->node) {
			far = true;
			far_lives |= was_outlived(step, rank, i);
		} else if (was_outlived(step, rank, i)) {
			return true;
		} else {
			near = true;
		}
	}
	return !near && (!far || far_lives);
}

/* Whether others may have sent the signal that has ended this rank. */
static bool was_sent(const struct ddp_step_rank *rank)
{
	int signal = WIFSIGNALED(rank->status) ? WTERMSIG(rank->status) : 0;

	return (signal == SIGTERM || signal == SIGKILL) && !rank->cause &&
	       !rank->message;
}

/*
 * Whether this rank was the first if srun says so, though of some nodes no agent
 * has told yet: their tasks begin later, or never.
 */
static bool is_srun_decisive(const struct ddp_step *step, uint32_t rank)
{
	return ddp_step_was_killed(step->ranks[rank].status) &&
	       was_killed_alone(step, rank);
}

/* Whether another one may have failed, and Slurm have killed this one. */
static bool is_doubtful(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return was_sent(of) &&
	       (has_unwatched(step, of->seen_ns) ||
		(step->known < step->world_size &&
		 !(of->confirmed && is_srun_decisive(step, rank))));
}

/*
 * A process closes its sockets before it has ended: what another rank writes of
 * that can be earlier. Slurm kills nobody as soon, and what ended later has not
 * made others end.
 */
static void find_silent(const struct ddp_step *step, struct ddp_verdict *first)
{
	const struct ddp_step_rank *told = &step->ranks[first->rank], *rank;
	int64_t at_ns, limit_ns = first->at_ns + TOGETHER_NS;
	struct ddp_who_cause cause;
	uint32_t i;

	if (first->kind != DDP_VERDICT_RANK || !told->message ||
	    ddp_who_find_cause(step, told->tail, &cause))
		return;
	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		at_ns = ddp_step_end_ns(step, i);
		if (!has_failed(rank) || rank->message ||
		    (WIFSIGNALED(rank->status) &&
		     !is_sent(WTERMSIG(rank->status))) || at_ns > limit_ns ||
		    rank->seen_ns >= told->seen_ns)
			continue;
		first->rank = i;
		first->node = rank->node;
		first->at_ns = limit_ns = at_ns;
	}
}

static bool lacked_memory(const struct ddp_step_rank *rank)
{
	return rank->ended && ddp_step_was_killed(rank->status) &&
	       rank->cause && strcmp(rank->cause, DDP_WIRE_NO_MEMORY) == 0;
}

/*
 * That the kernel kills a rank as memory is short no other rank brings about. To
 * free it takes a while, in which those that wait for the rank can fail.
 */
static void find_starved(const struct ddp_step *step, struct ddp_verdict *first)
{
	int64_t at_ns, limit_ns = first->at_ns + SOON_NS;
	uint32_t i;

	if (first->kind != DDP_VERDICT_RANK || step->ranks[first->rank].cause)
		return;
	for (i = 0; i < step->world_size; i++) {
		at_ns = ddp_step_end_ns(step, i);
		if (!lacked_memory(&step->ranks[i]) || at_ns > limit_ns)
			continue;
		first->rank = i;
		first->node = step->ranks[i].node;
		first->at_ns = limit_ns = at_ns;
	}
}

/* Whether no rank has failed, though Slurm takes their exit code for that. */
static bool have_saved(const struct ddp_step *step)
{
	const struct ddp_step_rank *rank;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		if (!rank->ended || !WIFEXITED(rank->status) ||
		    WEXITSTATUS(rank->status) != EX_TEMPFAIL)
			return false;
	}
	return step->world_size > 0;
}

/*
 * torchrun looks at its ranks from time to time, so that the task whose rank was
 * the first to fail can end after others: what it says of the time counts.
 */
static void find_launched(const struct ddp_step *step,
			  struct ddp_verdict *first)
{
	struct ddp_who_cause cause, earliest;
	uint32_t i;

	if (first->kind != DDP_VERDICT_RANK ||
	    !ddp_who_find_cause(step, step->ranks[first->rank].tail, &earliest))
		return;
	for (i = 0; i < step->world_size; i++) {
		if (!has_failed(&step->ranks[i]) ||
		    !ddp_who_find_cause(step, step->ranks[i].tail, &cause) ||
		    strcmp(cause.time, earliest.time) >= 0)
			continue;
		earliest = cause;
		first->rank = i;
		first->node = step->ranks[i].node;
		first->at_ns = ddp_step_end_ns(step, i);
	}
}

/* Without doubts. */
static void find_first(const struct ddp_step *step, struct ddp_verdict *first)
{
	find_rank(step, first);
	find_launched(step, first);
	find_silent(step, first);
	find_starved(step, first);
}

struct ddp_verdict ddp_verdict_find(const struct ddp_step *step)
{
	struct ddp_verdict first = { .kind = DDP_VERDICT_NONE };

	if (step->hang && step->hang->judged_ns) {
		first.kind = DDP_VERDICT_HANG;
		first.after_ns = step->hang->judged_ns - step->start_ns;
		return first;
	}
	if (have_saved(step)) {
		first.kind = DDP_VERDICT_SAVED;
		return first;
	}
	find_first(step, &first);
	if (first.kind == DDP_VERDICT_RANK && was_signalled(step, first.at_ns))
		first.kind = DDP_VERDICT_SIGNAL;
	else if (first.kind == DDP_VERDICT_RANK &&
		 is_doubtful(step, first.rank))
		first.kind = DDP_VERDICT_NONE;
	find_node(step, &first);
	if (first.kind == DDP_VERDICT_RANK)
		ddp_verdict_find_together(&first, step);
	if (first.kind != DDP_VERDICT_NONE && first.at_ns > step->start_ns)
		first.after_ns = first.at_ns - step->start_ns;
	return first;
}

bool ddp_verdict_needs_srun(const struct ddp_step *step)
{
	struct ddp_verdict first = { .kind = DDP_VERDICT_NONE };
	const struct ddp_step_rank *of;

	if (step->known == step->world_size)
		return false;
	find_first(step, &first);
	of = &step->ranks[first.rank];
	return first.kind == DDP_VERDICT_RANK && was_sent(of) &&
	       !of->confirmed && !has_unwatched(step, of->seen_ns) &&
	       is_srun_decisive(step, first.rank);
}

bool ddp_verdict_is_sent(const struct ddp_verdict *verdict,
			 const struct ddp_step *step)
{
	const struct ddp_step_rank *rank = &step->ranks[verdict->rank];

	return verdict->kind == DDP_VERDICT_RANK && WIFSIGNALED(rank->status) &&
	       is_sent(WTERMSIG(rank->status)) && !rank->cause &&
	       !rank->message;
}

bool ddp_verdict_is_before(const struct ddp_verdict *verdict,
			   const struct ddp_step *step, const char *ranks)
{
	bool before = false;
	uint32_t i;

	if (verdict->kind != DDP_VERDICT_RANK)
		return false;
	for (i = 0; i < step->world_size && !before; i++)
		before = step->ranks[i].ended && ddp_ranks_has(ranks, i) &&
			 (ddp_step_end_ns(step, verdict->rank) <=
			  ddp_step_end_ns(step, i) ||
			  (verdict->together > 0 &&
			   ddp_verdict_is_alike(verdict, step, i)));
	return before;
}

bool ddp_verdict_is_own(const struct ddp_verdict *verdict,
			const struct ddp_step *step)
{
	const struct ddp_step_rank *rank = &step->ranks[verdict->rank];

	return verdict->kind == DDP_VERDICT_RANK &&
	       (rank->cause || (WIFSIGNALED(rank->status) &&
				!is_sent(WTERMSIG(rank->status))));
}

int64_t ddp_verdict_wait_ms(const struct ddp_step *step)
{
	struct ddp_verdict first = ddp_verdict_find(step);

	return ddp_verdict_is_sent(&first, step) ? DDP_VERDICT_SENT_MS :
		DDP_VERDICT_WAIT_MS;
}

bool ddp_verdict_had_error(const struct ddp_verdict *verdict,
			   const struct ddp_step *step, uint32_t rank)
{
	int64_t at_ns = verdict->at_ns;

	/* As in find_silent. */
	if (!step->ranks[verdict->rank].message)
		at_ns -= TOGETHER_NS;
	return ddp_step_had_error(step, rank, at_ns);
}

bool ddp_verdict_awaits_error(const struct ddp_step *step)
{
	struct ddp_verdict first = ddp_verdict_find(step);
	uint32_t i;

	if (first.kind != DDP_VERDICT_RANK ||
	    ddp_verdict_is_own(&first, step))
		return false;
	for (i = 0; i < step->world_size; i++)
		if (ddp_verdict_had_error(&first, step, i))
			return true;
	return false;
}

int ddp_verdict_code(const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	if (verdict->kind == DDP_VERDICT_HANG)
		return DDP_HANG_CODE;
	return verdict->kind == DDP_VERDICT_RANK ?
		ddp_step_code(step->ranks[verdict->rank].status) : 1;
}
