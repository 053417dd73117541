/* SPDX-License-Identifier: BSD-3-Clause */
/* Who failed first, and with whom. */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "layout/tasks.h"
#include "verdict/hang.h"
#include "verdict/names.h"
#include "verdict/times.h"

enum { USAGE = 2 };	/* as shells, getopt's users and argparse have it */

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
		    ddp_step_end_ns(step, i) - first_ns > ms(DDP_TOGETHER_MS))
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
	int64_t at_once_ns = ms(DDP_AT_ONCE_MS);
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended && step->ranks[i].status == 0)
			at_once_ns = ms(DDP_SOON_MS);
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (node->silent ||
		    (node->left && node->left_ns - seen_ns < at_once_ns))
			return true;
	}
	return false;
}

/* Whether others may have sent the signal that has ended this rank. */
static bool was_sent(const struct ddp_step_rank *rank)
{
	int signal = WIFSIGNALED(rank->status) ? WTERMSIG(rank->status) : 0;

	return (signal == SIGTERM || signal == SIGKILL) && !rank->cause &&
	       !rank->message;
}

/*
 * Returns true if Slurm may have ended this rank by SIGTERM, because another
 * one had ended well without leaving MPI. Since Slurm 26.05 mpi/pmix then sends
 * SIGTERM to all ranks. A user who kills a rank sends it to that one alone, and
 * Slurm ends the others after more than DDP_TOGETHER_MS. The supervisor sends
 * it after a failure, or as a notice.
 */
static bool may_miss_one(const struct ddp_step *step, uint32_t rank)
{
	bool missed = false, last = true, together = false;
	const struct ddp_step_rank *other;
	int64_t after_ns;
	uint32_t i;

	if (WTERMSIG(step->ranks[rank].status) != SIGTERM || step->noticed)
		return false;
	for (i = 0; i < step->world_size; i++) {
		other = &step->ranks[i];
		if (i == rank)
			continue;
		/* Clocks are known to some ms. */
		after_ns =
			ddp_step_end_ns(step, i) - ddp_step_end_ns(step, rank);
		if (other->ended && other->status == 0 &&
		    after_ns < ms(DDP_TOGETHER_MS)) {
			missed |= after_ns > -ms(DDP_MISSED_MS);
			continue;
		}
		last = false;
		together |= other->ended &&
			    WTERMSIG(other->status) == SIGTERM &&
			    after_ns <= ms(DDP_TOGETHER_MS);
	}
	return missed && (last || together);
}

/*
 * Returns true if SIGKILL has ended this rank, and another of its node lived on, or
 * ended otherwise, and later: Slurm would have killed both, and then their agent.
 */
static bool was_killed_alone(const struct ddp_step *step, uint32_t rank)
{
	int64_t at_ns = ddp_step_end_ns(step, rank) + ms(DDP_TOGETHER_MS);
	const struct ddp_step_rank *of = &step->ranks[rank], *other;
	uint32_t i;

	if (!ddp_step_was_killed(of->status) || step->nodes[of->node].left)
		return false;
	for (i = 0; i < step->world_size; i++) {
		other = &step->ranks[i];
		if (i != rank && other->known && other->node == of->node &&
		    (!other->ended || (!ddp_step_was_killed(other->status) &&
				       ddp_step_end_ns(step, i) > at_ns)))
			return true;
	}
	return false;
}

/* Whether another one may have failed, and Slurm have killed this one. */
static bool is_doubtful(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return was_sent(of) &&
	       (has_unwatched(step, of->seen_ns) || may_miss_one(step, rank) ||
		(step->known < step->world_size &&
		 !was_killed_alone(step, rank)));
}

/*
 * A process closes its sockets before it has ended: what another rank writes of
 * that can be earlier. Slurm kills nobody as soon, and what ended later has not
 * made others end. Libraries that have lost a peer call abort().
 */
static void find_silent(const struct ddp_step *step, struct ddp_verdict *first)
{
	const struct ddp_step_rank *told = &step->ranks[first->rank], *rank;
	int64_t at_ns, limit_ns = first->at_ns + ms(DDP_TOGETHER_MS);
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
		     WTERMSIG(rank->status) == SIGABRT) || at_ns > limit_ns ||
		    rank->seen_ns >= told->seen_ns)
			continue;
		first->rank = i;
		first->at_ns = limit_ns = at_ns;
	}
}

static bool lacked_memory(const struct ddp_step_rank *rank)
{
	return rank->ended && ddp_step_code(rank->status) == 128 + SIGKILL &&
	       rank->cause && strcmp(rank->cause, DDP_WIRE_NO_MEMORY) == 0;
}

/*
 * That the kernel kills a rank as memory is short no other rank brings about. To
 * free it takes a while, in which those that wait for the rank can fail.
 */
static void find_starved(const struct ddp_step *step, struct ddp_verdict *first)
{
	int64_t at_ns, limit_ns = first->at_ns + ms(DDP_SOON_MS);
	const char *cause;
	uint32_t i;

	if (first->kind != DDP_VERDICT_RANK)
		return;
	cause = step->ranks[first->rank].cause;
	if (cause && strcmp(cause, DDP_WIRE_NO_MEMORY_OF) != 0)
		return;
	for (i = 0; i < step->world_size; i++) {
		at_ns = ddp_step_end_ns(step, i);
		if (!lacked_memory(&step->ranks[i]) || at_ns > limit_ns)
			continue;
		first->rank = i;
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
 * torchrun checks its ranks now and then, so that the task whose rank was the first
 * to fail can end after others. A rank that was killed is the cause, and then an
 * earlier one, if the time between is longer than that between two checks.
 */
static void find_launched(const struct ddp_step *step,
			  struct ddp_verdict *first)
{
	struct ddp_who_cause cause, best;
	bool earlier;
	uint32_t i;

	if (first->kind != DDP_VERDICT_RANK ||
	    !ddp_who_find_cause(step, step->ranks[first->rank].tail, &best))
		return;
	for (i = 0; i < step->world_size; i++) {
		if (!has_failed(&step->ranks[i]) ||
		    !ddp_who_find_cause(step, step->ranks[i].tail, &cause))
			continue;
		earlier = cause.at_s && best.at_s - cause.at_s > DDP_CHECKS_S;
		if (cause.killed != best.killed ? !cause.killed : !earlier)
			continue;
		best = cause;
		first->rank = i;
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

/* ---- ranks that failed in the same way
 *
 * Ranks that meet the same mistake, as a bad option or a bad batch, fail within
 * the time by which they begin, or leave their last collective, one after the
 * other. Ranks that lose a peer fail after it, often with its words, as the two
 * ends of a connection do. So nobody was first only where all failed within
 * DDP_ALIKE_MS, which is also how long a verdict usually waits for them:
 * where it comes later, as an agent is slow, it says the same.
 */

/* What a rank said last: its error, or the last line of its stderr; or "". */
static const char *find_last(const struct ddp_step_rank *rank, size_t *length)
{
	const char *text = rank->message ? rank->message : rank->tail;
	const char *at, *end;

	if (!text)
		text = "";
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (at = end; at > text && at[-1] != '\n';)
		at--;
	*length = (size_t)(end - at);
	return at;
}

static void skip_digits(const char **at, const char *end)
{
	while (*at < end && isdigit((unsigned char)**at))
		++*at;
}

/*
 * Whether two ranks said the same last. Their lines may differ in numbers: in a
 * rank's own ("[rank1]: ..."), a GPU's, a time.
 */
static bool has_said_same(const struct ddp_step_rank *a,
			  const struct ddp_step_rank *b)
{
	size_t length_a, length_b;
	const char *at_a = find_last(a, &length_a), *end_a = at_a + length_a;
	const char *at_b = find_last(b, &length_b), *end_b = at_b + length_b;

	while (at_a < end_a && at_b < end_b) {
		if (isdigit((unsigned char)*at_a) &&
		    isdigit((unsigned char)*at_b)) {
			skip_digits(&at_a, end_a);
			skip_digits(&at_b, end_b);
		} else if (*at_a++ != *at_b++) {
			return false;
		}
	}
	return at_a == end_a && at_b == end_b;
}

static bool has_spoken(const struct ddp_step_rank *rank)
{
	size_t length;

	find_last(rank, &length);
	return length > 0 || rank->cause;
}

/*
 * Whether it refuses its command line, which all ranks have. Then one of them
 * may speak for all that end at the same time: a silent one that ends later may
 * have ended because of it. So may all others of a rank that is silent and has
 * another exit code.
 */
static bool is_refusal(const struct ddp_step_rank *rank)
{
	return WIFEXITED(rank->status) &&
	       (WEXITSTATUS(rank->status) == USAGE ||
		WEXITSTATUS(rank->status) == EX_USAGE);
}

bool ddp_verdict_is_refusal(const struct ddp_verdict *verdict,
			    const struct ddp_step *step)
{
	return verdict->kind == DDP_VERDICT_RANK &&
	       is_refusal(&step->ranks[verdict->rank]);
}

bool ddp_verdict_is_in_time(const struct ddp_verdict *verdict,
			    const struct ddp_step *step, uint32_t rank)
{
	return step->ranks[rank].ended &&
	       ddp_step_end_ns(step, rank) - verdict->at_ns <= ms(DDP_ALIKE_MS);
}

bool ddp_verdict_is_unordered(const struct ddp_verdict *verdict,
			      const struct ddp_step *step, uint32_t rank)
{
	struct ddp_who_cause first, cause;

	return verdict->kind == DDP_VERDICT_RANK &&
	       has_failed(&step->ranks[rank]) &&
	       ddp_who_find_cause(step, step->ranks[verdict->rank].tail,
				  &first) &&
	       ddp_who_find_cause(step, step->ranks[rank].tail, &cause) &&
	       first.killed == cause.killed && first.at_s && cause.at_s &&
	       llabs(first.at_s - cause.at_s) <= DDP_CHECKS_S;
}

/*
 * A signal that was sent tells nothing: it may be the one that ends all. Nor do
 * the last lines of torchrun's summary, which are always the same.
 */
bool ddp_verdict_is_alike(const struct ddp_verdict *verdict,
			  const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *first = &step->ranks[verdict->rank];
	const struct ddp_step_rank *of = &step->ranks[rank];
	struct ddp_who_cause cause;

	if (ddp_who_find_cause(step, of->tail, &cause))
		return ddp_verdict_is_unordered(verdict, step, rank);
	return verdict->kind == DDP_VERDICT_RANK &&
	       !ddp_verdict_is_sent(verdict, step) &&
	       of->ended && !of->answered && of->status == first->status &&
	       strcmp(of->cause ? of->cause : "",
		      first->cause ? first->cause : "") == 0 &&
	       (has_said_same(of, first) ||
		(is_refusal(of) && !has_spoken(of) &&
		 ddp_verdict_is_in_time(verdict, step, rank)));
}

/* The lowest rank that ended in time, with the first one's code, and spoke. */
static uint32_t find_speaker(const struct ddp_verdict *verdict,
			     const struct ddp_step *step)
{
	const struct ddp_step_rank *first = &step->ranks[verdict->rank], *of;
	uint32_t i;

	for (i = 0; i < step->world_size && !has_spoken(first); i++) {
		of = &step->ranks[i];
		if (ddp_verdict_is_in_time(verdict, step, i) &&
		    of->status == first->status && has_spoken(of))
			return i;
	}
	return verdict->rank;
}

static void find_together(struct ddp_verdict *verdict,
			  const struct ddp_step *step)
{
	struct ddp_verdict found = *verdict;
	uint32_t i, ended = 0, alike = 0, same = 0;

	for (i = 0; i < step->world_size; i++)
		same += ddp_verdict_is_unordered(verdict, step, i);
	if (same > 1)
		verdict->together = same;
	if (same > 0)
		return;
	if (is_refusal(&step->ranks[verdict->rank]))
		found.rank = find_speaker(verdict, step);
	if (!has_spoken(&step->ranks[found.rank]))
		return;
	for (i = 0; i < step->world_size; i++) {
		if (!ddp_verdict_is_in_time(verdict, step, i))
			continue;
		ended++;
		alike += ddp_verdict_is_alike(&found, step, i);
	}
	if (alike < ended || alike <= step->world_size / 2 || alike == 1)
		return;
	found.together = alike;
	*verdict = found;
}

/* ---- the verdict */

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
	if (first.kind == DDP_VERDICT_RANK) {
		find_together(&first, step);
		first.node = step->ranks[first.rank].node;
	}
	if (first.kind != DDP_VERDICT_NONE && first.at_ns > step->start_ns)
		first.after_ns = first.at_ns - step->start_ns;
	return first;
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

bool ddp_verdict_had_error(const struct ddp_verdict *verdict,
			   const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	int64_t at_ns = verdict->at_ns;

	/* As in find_silent. */
	if (!step->ranks[verdict->rank].message)
		at_ns -= ms(DDP_TOGETHER_MS);
	return of->error && !of->ended &&
	       of->error_ns + step->nodes[of->node].offset_ns < at_ns;
}

bool ddp_verdict_awaits_error(const struct ddp_verdict *verdict,
			      const struct ddp_step *step)
{
	uint32_t i;

	if (verdict->kind != DDP_VERDICT_RANK ||
	    ddp_verdict_is_own(verdict, step))
		return false;
	for (i = 0; i < step->world_size; i++)
		if (ddp_verdict_had_error(verdict, step, i))
			return true;
	return false;
}

bool ddp_verdict_was_ending(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	int signal = WIFSIGNALED(of->status) ? WTERMSIG(of->status) : 0;
	struct ddp_who_cause cause;

	return of->ended && (signal == SIGTERM || signal == SIGKILL) &&
	       !of->cause &&
	       (of->message || ddp_who_find_cause(step, of->tail, &cause));
}

int ddp_verdict_code(const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	if (verdict->kind == DDP_VERDICT_HANG)
		return DDP_HANG_CODE;
	return verdict->kind == DDP_VERDICT_RANK &&
	       !ddp_verdict_was_ending(step, verdict->rank) ?
		ddp_step_code(step->ranks[verdict->rank].status) : 1;
}
