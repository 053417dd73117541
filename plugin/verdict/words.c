/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a verdict is said to people: who is named, what became of the others, and
 * what is known where nobody is named.
 */
#define _GNU_SOURCE
#include "verdict/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "layout/vars.h"
#include "verdict/hang.h"
#include "verdict/names.h"
#include "verdict/times.h"
#include "wire/wire.h"

enum {
	CAUSES_MAX = 16,	/* ranks that launchers name, in a line */
	TAILS_MAX = 3		/* other launchers whose last lines are shown */
};

static void add_status(struct ddp_text *text, uint32_t status)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT",
		[SIGILL] = "ILL", [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",
		[SIGBUS] = "BUS", [SIGFPE] = "FPE", [SIGKILL] = "KILL",
		[SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
		[SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ", [SIGSYS] = "SYS",
	};
	const size_t count = sizeof(names) / sizeof(names[0]);
	size_t number = (size_t)WTERMSIG(status);

	if (!WIFSIGNALED(status)) {
		ddp_text_add(text, "exit code %d", WEXITSTATUS(status));
		return;
	}
	ddp_text_add(text, "killed by signal %zu", number);
	if (number < count && names[number])
		ddp_text_add(text, " (SIG%s)", names[number]);
}

/* "12.3 s" */
static void add_seconds(struct ddp_text *text, int64_t ns)
{
	int64_t tenths = ns / 100000000;

	ddp_text_add(text, "%" PRId64 ".%d s", tenths / 10,
		     (int)(tenths % 10));
}

/*
 * The last lines of a rank's stderr; what ends without a newline is one. Of a
 * launcher those of its ranks, if there are any.
 */
static void add_tail(struct ddp_text *text, const struct ddp_step *step,
		     uint32_t rank)
{
	const char *tail = step->ranks[rank].tail;
	size_t own = step->launcher ? ddp_who_own_part(tail) : 0, length;
	const char *end = tail + (own ? own : strlen(tail)), *at = end;
	int lines = DDP_VERDICT_LINES;

	if (at > tail && at[-1] == '\n')
		at--;
	while (at > tail && (at[-1] != '\n' || --lines > 0))
		at--;
	for (; at < end; at += length + (at[length] == '\n')) {
		length = strcspn(at, "\n");
		ddp_text_add(text, "slurm-ddp: ");
		ddp_who_add_word(text, step);
		ddp_text_add(text, " %u: | ", rank);
		ddp_text_add_quoted(text, "%.*s", (int)length, at);
		ddp_text_add(text, "\n");
	}
}

/* When its process ended. One that has an error wrote that earlier. */
static int64_t get_end_ns(const struct ddp_step *step, uint32_t rank)
{
	return step->ranks[rank].message ? step->ranks[rank].seen_ns :
		ddp_step_end_ns(step, rank);
}

/* Whether a rank had ended well before the one that is the context ended. */
static bool had_ended(const struct ddp_step *step, uint32_t rank,
		      const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return of->ended && of->status == 0 && ddp_step_end_ns(step, rank) <
	       get_end_ns(step, *(const uint32_t *)context);
}

/*
 * A rank that lacks a peer ends by an exit code, or aborts, or has told its error
 * before Slurm ends it. Where its end has another cause, or was sent to it, it did
 * not wait for one.
 */
static bool may_have_waited(const struct ddp_step_rank *rank)
{
	return !rank->cause && (rank->message || !WIFSIGNALED(rank->status) ||
				WTERMSIG(rank->status) == SIGABRT);
}

/* Peers that left early are perhaps why a rank has failed. */
static void add_had_ended(struct ddp_text *text, uint32_t rank,
			  const struct ddp_step *step)
{
	int64_t before_ns = -1, ns;
	uint32_t i, count;

	if (!may_have_waited(&step->ranks[rank]))
		return;
	for (i = 0; i < step->world_size; i++) {
		ns = get_end_ns(step, rank) - ddp_step_end_ns(step, i);
		if (had_ended(step, i, &rank) && ns > before_ns)
			before_ns = ns;
	}
	if (before_ns < 0)
		return;
	ddp_text_add(text, "slurm-ddp: ");
	count = ddp_who_add(text, step, had_ended, &rank);
	ddp_text_add(text, " had ended with exit code 0, %s",
		     count == 1 ? "" : "the first ");
	add_seconds(text, before_ns);
	ddp_text_add(text, " before; did ");
	ddp_who_add_word(text, step);
	ddp_text_add(text, " %u wait for %s?\n", rank,
		     count == 1 ? "it" : "them");
}

/* Who had an error before, but has not ended, though we have waited. */
static void add_had_error(struct ddp_text *text,
			  const struct ddp_verdict *verdict,
			  const struct ddp_step *step)
{
	const struct ddp_step_rank *rank;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		if (!ddp_verdict_had_error(verdict, step, i))
			continue;
		rank = &step->ranks[i];
		ddp_text_add(text, "slurm-ddp: ");
		ddp_who_add_word(text, step);
		ddp_text_add(text, " %u, which still ran, had an error ", i);
		add_seconds(text, verdict->at_ns - rank->error_ns -
			    step->nodes[rank->node].offset_ns);
		ddp_text_add_quoted(text, " before: %s", rank->error);
		ddp_text_add(text, "\n");
	}
}

/* Returns true if a rank runs, as far as anybody would tell if it did not. */
static bool still_runs(const struct ddp_step *step, uint32_t rank,
		       const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	(void)context;
	return !of->ended && ddp_step_is_watched(step, rank) &&
	       !step->nodes[of->node].lost;
}

/* Whether it ran when those of the verdict that is the context had failed. */
static bool still_ran(const struct ddp_step *step, uint32_t rank,
		      const void *context)
{
	return step->ranks[rank].ended ?
		!ddp_verdict_is_in_time(context, step, rank) &&
		!ddp_verdict_is_unordered(context, step, rank) :
		still_runs(step, rank, NULL);
}

/* Returns true if the verdict names a launcher that told when its rank failed. */
static bool is_launched(const struct ddp_verdict *verdict,
			const struct ddp_step *step)
{
	return ddp_verdict_is_unordered(verdict, step, verdict->rank);
}

/* The ranks that launchers name, of the world that these have made. */
static void add_causes(struct ddp_text *text, const struct ddp_verdict *verdict,
		       const struct ddp_step *step)
{
	struct ddp_who_cause cause;
	const char *comma = "";
	uint32_t i, left = CAUSES_MAX;

	ddp_text_add(text, " within seconds of each other (%s names ranks ",
		     step->launcher);
	for (i = 0; i < step->world_size && left > 0; i++) {
		if (!ddp_verdict_is_unordered(verdict, step, i))
			continue;
		ddp_who_find_cause(step, step->ranks[i].tail, &cause);
		ddp_text_add(text, "%s%u", comma, cause.rank);
		comma = ",";
		left--;
	}
	ddp_text_add(text, verdict->together > CAUSES_MAX ? ", ...)" : ")");
}

static void add_together(struct ddp_text *text,
			 const struct ddp_verdict *verdict,
			 const struct ddp_step *step)
{
	bool any = false;
	uint32_t i;

	ddp_text_add(text, "slurm-ddp: ");
	if (verdict->together == step->world_size)
		ddp_text_add(text, "all ");
	else
		ddp_text_add(text, "%u of ", verdict->together);
	ddp_text_add(text, "%u ", step->world_size);
	ddp_who_add_word(text, step);
	ddp_text_add(text, "s failed");
	if (is_launched(verdict, step))
		add_causes(text, verdict, step);
	else
		ddp_text_add(text, " in the same way");
	for (i = 0; i < step->world_size && !any; i++)
		any = still_ran(step, i, verdict);
	if (any) {
		ddp_text_add(text, ", while ");
		ddp_who_add(text, step, still_ran, verdict);
		ddp_text_add(text, " still ran");
	}
	ddp_text_add(text, ", after ");
}

/*
 * Returns true if a launcher has told of its ranks, and another has not: it checks
 * its own now and then, so that one of them may have failed before.
 */
static bool is_open(const struct ddp_verdict *verdict,
		    const struct ddp_step *step)
{
	const struct ddp_step_rank *rank;
	struct ddp_who_cause cause;
	uint32_t i;

	if (!ddp_who_find_cause(step, step->ranks[verdict->rank].tail,
				&cause) || cause.killed)
		return false;
	for (i = 0; i < step->world_size; i++) {
		rank = &step->ranks[i];
		if (!(rank->ended && rank->status == 0) &&
		    !ddp_who_find_cause(step, rank->tail, &cause))
			return true;
	}
	return false;
}

static void add_first(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step)
{
	const struct ddp_step_rank *rank = &step->ranks[verdict->rank];
	struct ddp_who_cause cause;

	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add_word(text, step);
	ddp_text_add(text, " %u failed first%s on ", verdict->rank,
		     is_open(verdict, step) ? ", as far as is known," : "");
	ddp_text_add_string(text, step->nodes[rank->node].name);
	ddp_text_add(text, " (");
	if (ddp_who_find_cause(step, rank->tail, &cause))
		ddp_text_add(text, "its rank %u, ", cause.rank);
	if (rank->gpus)
		ddp_text_add_quoted(text, "GPU %s, ", rank->gpus);
	ddp_text_add(text, "pid %u) after ", rank->pid);
}

/*
 * Says what to do where the last lines do not. Debian 12's torchrun does not run
 * under its Python 3.11.
 */
static void add_hint(struct ddp_text *text, const struct ddp_step *step,
		     const char *tail)
{
	if (strstr(tail, DDP_VARS_SEVERAL))
		ddp_text_add(text, "slurm-ddp: each rank started a launcher, "
			     "such as torchrun; with --ddp=torchrun srun starts "
			     "one a node\n");
	if (step->launcher && strstr(tail, "start_processes") &&
	    strstr(tail, "'NoneType' object has no attribute 'get'"))
		ddp_text_add(text, "slurm-ddp: this torchrun needs the options "
			     "--redirects=1 --tee=1\n");
}

static void add_rank(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	const struct ddp_step_rank *rank = &step->ranks[verdict->rank];
	uint32_t i, tails = 0;

	if (verdict->together > 0)
		add_together(text, verdict, step);
	else
		add_first(text, verdict, step);
	add_seconds(text, verdict->after_ns);
	ddp_text_add(text, ": ");
	if (rank->cause || rank->guess)
		ddp_text_add_quoted(text, "%s, ", rank->cause ? rank->cause :
				    rank->guess);
	if (ddp_verdict_was_ending(step, verdict->rank))
		ddp_text_add(text, "it was still ending when it was killed");
	else
		add_status(text, rank->status);
	if (rank->message &&
	    !(verdict->together > 0 && is_launched(verdict, step)))
		ddp_text_add_quoted(text, ": %s", rank->message);
	ddp_text_add(text, "\n");
	add_had_ended(text, verdict->rank, step);
	add_had_error(text, verdict, step);
	if (rank->tail) {
		add_hint(text, step, rank->tail);
		add_tail(text, step, verdict->rank);
	}
	for (i = 0; i < step->world_size && tails < TAILS_MAX; i++)
		if (i != verdict->rank &&
		    ddp_verdict_is_unordered(verdict, step, i)) {
			add_tail(text, step, i);
			tails++;
		}
	if (verdict->together == 0 && is_open(verdict, step))
		ddp_text_add(text, "slurm-ddp: a rank of another task may have "
			     "failed before, as %s checks its ranks now and "
			     "then; PyTorch's @record tells more\n",
			     step->launcher);
}

/* Whether a node was lost with the first one, and in the same way. */
static bool is_lost_with(const struct ddp_step_node *first,
			 const struct ddp_step_node *node)
{
	return (node->lost || node->orphaned) &&
	       node->orphaned == first->orphaned &&
	       node->unlaunched == first->unlaunched &&
	       node->awaited == first->awaited &&
	       node->lost_ns - first->lost_ns < ms(DDP_LOST_TOGETHER_MS);
}

/* Adds "node n1", or "nodes n1,n3", and returns true if there are several. */
static bool add_names(struct ddp_text *text, const struct ddp_step_node *first,
		      const struct ddp_step *step)
{
	const struct ddp_step_node *node;
	uint32_t i, count = 0, named = 0;

	for (i = 0; i < step->node_count; i++)
		count += is_lost_with(first, &step->nodes[i]);
	ddp_text_add(text, count > 1 ? "nodes " : "node ");
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (is_lost_with(first, node))
			ddp_text_add_quoted(text, "%s%s", named++ ? "," : "",
					    node->name);
	}
	return count > 1;
}

static void add_node(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	const struct ddp_step_node *node = &step->nodes[verdict->node];
	bool many;

	ddp_text_add(text, "slurm-ddp: ");
	many = add_names(text, node, step);
	ddp_text_add(text, " %s lost first, after ", many ? "were" : "was");
	add_seconds(text, verdict->after_ns);
	if (node->orphaned)
		ddp_text_add(text, many ? ": their slurmstepds have ended\n" :
			     ": its slurmstepd has ended\n");
	else if (node->unlaunched && node->awaited)
		ddp_text_add(text, ": srun could not start tasks there, as %s "
			     "not answer\n", many ? "their slurmds do" :
			     "its slurmd does");
	else if (node->unlaunched)
		ddp_text_add(text, ": srun could not start tasks there\n");
	else
		ddp_text_add(text, ": %s not answered for %d s\n",
			     many ? "they have" : "it has",
			     DDP_LINK_SILENCE_MS / 1000);
}

static void add_saved(struct ddp_text *text, const struct ddp_step *step)
{
	ddp_text_add(text, "slurm-ddp: ");
	if (step->world_size > 1)
		ddp_text_add(text, "all %u ", step->world_size);
	ddp_who_add_word(text, step);
	ddp_text_add(text, step->world_size > 1 ? "s" : " 0");
	ddp_text_add(text, " ended with exit code %d: %s saved, and there is more "
		     "to do\n", EX_TEMPFAIL,
		     step->world_size > 1 ? "they have" : "it has");
}

static bool has_timed_out(const char *text)
{
	return text && (strcasestr(text, "timed out") ||
			strcasestr(text, "timeout"));
}

/* Repeats the warnings of a step that waited until somebody ended it. */
static void add_warnings(struct ddp_text *text,
			 const struct ddp_verdict *verdict,
			 const struct ddp_step *step)
{
	const struct ddp_step_rank *first = &step->ranks[verdict->rank];
	bool waited = verdict->kind == DDP_VERDICT_HANG ||
		      verdict->kind == DDP_VERDICT_SIGNAL ||
		      (verdict->kind == DDP_VERDICT_RANK &&
		       (has_timed_out(first->message) ||
			has_timed_out(first->tail)));
	uint32_t i;

	for (i = 0; waited && i < step->world_size; i++)
		if (step->ranks[i].warning) {
			ddp_text_add_quoted(text, "slurm-ddp: %s",
					    step->ranks[i].warning);
			ddp_text_add(text, "\n");
		}
}

void ddp_verdict_add(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	if (verdict->kind == DDP_VERDICT_RANK)
		add_rank(text, verdict, step);
	else if (verdict->kind == DDP_VERDICT_NODE)
		add_node(text, verdict, step);
	else if (verdict->kind == DDP_VERDICT_HANG)
		ddp_hang_add_words(text, step);
	else if (verdict->kind == DDP_VERDICT_SAVED)
		add_saved(text, step);
	add_warnings(text, verdict, step);
}

/* ---- the others */

enum end {
	APART,		/* it is the one that is named, or not of the step's end */
	ALIKE,		/* it failed in the same way */
	LEFT, KILLED,	/* it got time to end, and did; and did not */
	BY_SIGTERM,	/* SIGTERM, by which it was told so, has ended it */
	BECAUSE		/* it ended because of the one that is named */
};

static bool is_named(const struct ddp_verdict *verdict, uint32_t rank,
		     uint32_t node)
{
	if (verdict->kind == DDP_VERDICT_NODE)
		return node == verdict->node;
	return verdict->kind == DDP_VERDICT_RANK && rank == verdict->rank;
}

static enum end find_end(const struct ddp_verdict *verdict,
			 const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	const struct ddp_step_grace *grace = &step->grace;

	if (!of->known || is_named(verdict, rank, of->node))
		return APART;
	if (of->ended && grace->began_ns && of->seen_ns >= grace->began_ns) {
		if (WIFSIGNALED(of->status) && WTERMSIG(of->status) == SIGTERM)
			return BY_SIGTERM;
		if (!ddp_step_was_killed(of->status))
			return LEFT;
		if (grace->over_ns && of->seen_ns >= grace->over_ns)
			return KILLED;
	}
	if (verdict->kind == DDP_VERDICT_HANG)
		return APART;
	if (ddp_verdict_is_alike(verdict, step, rank))
		return ALIKE;
	return !of->ended || (of->status != 0 && !of->answered) ?
		BECAUSE : APART;
}

/*
 * Whether it was killed, though the time of --ddp-grace was not over. Its agent
 * may have been killed with it, and then that has ended since the first failure.
 */
static bool is_early(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];
	const struct ddp_step_node *node = &step->nodes[of->node];
	const struct ddp_step_grace *grace = &step->grace;
	int64_t at_ns = of->ended ? of->seen_ns : node->left_ns;

	if (!grace->began_ns || (grace->over_ns && at_ns >= grace->over_ns))
		return false;
	return of->ended ? ddp_step_was_killed(of->status) && !of->cause :
		node->left && step->end_ns && at_ns >= step->end_ns;
}

/* "3 other ranks" */
static void add_count(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t count)
{
	if (count > 0)
		ddp_text_add(text, "%u", count);
	else
		ddp_text_add(text, "no");
	ddp_text_add(text, verdict->kind == DDP_VERDICT_HANG ? " " : " other ");
	ddp_who_add_word(text, step);
	ddp_text_add(text, "%s", count > 1 ? "s" : "");
}

static void add_grace(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t left,
		      uint32_t killed)
{
	ddp_text_add(text, "slurm-ddp: --ddp-grace=%u: ", step->grace.seconds);
	add_count(text, verdict, step, left);
	ddp_text_add(text, " ended by %s, ", left > 1 ? "themselves" : "itself");
	if (killed > 0)
		ddp_text_add(text, "%u had to be killed\n", killed);
	else
		ddp_text_add(text, "none had to be killed\n");
}

/* A program that has saved may end itself so. */
static void add_by_sigterm(struct ddp_text *text,
			   const struct ddp_verdict *verdict,
			   const struct ddp_step *step, uint32_t count)
{
	ddp_text_add(text, "slurm-ddp: --ddp-grace=%u: ", step->grace.seconds);
	add_count(text, verdict, step, count);
	ddp_text_add(text, " %s ended by SIGTERM itself; if %s not saved, let "
		     "the program handle SIGTERM, and a shell exec it\n",
		     count > 1 ? "were" : "was",
		     count > 1 ? "they have" : "it has");
}

/* It is not known who has killed them, only that Slurm does so. */
static void add_early(struct ddp_text *text, const struct ddp_verdict *verdict,
		      const struct ddp_step *step, uint32_t early)
{
	ddp_text_add(text, "slurm-ddp: --ddp-grace=%u: ", step->grace.seconds);
	add_count(text, verdict, step, early);
	ddp_text_add(text, " %s killed before that, and not by slurm-ddp; "
		     "Slurm's PMIx plugin does so when a rank ends without "
		     "MPI_Finalize\n", early > 1 ? "were" : "was");
}

void ddp_verdict_add_others(struct ddp_text *text,
			    const struct ddp_verdict *verdict,
			    const struct ddp_step *step)
{
	uint32_t counts[BECAUSE + 1] = { 0 }, early = 0, said, i;
	enum end end;

	for (i = 0; i < step->world_size; i++) {
		end = find_end(verdict, step, i);
		counts[end]++;
		early += end == BECAUSE && is_early(step, i);
	}
	/* Of these it is said already; since, a clock may be known better. */
	said = verdict->together > 0 ? verdict->together - 1 : 0;
	counts[ALIKE] -= said < counts[ALIKE] ? said : counts[ALIKE];
	if (counts[ALIKE] > 0) {
		ddp_text_add(text, "slurm-ddp: ");
		add_count(text, verdict, step, counts[ALIKE]);
		ddp_text_add(text, " failed %s\n",
			     is_launched(verdict, step) ?
			     "within seconds of that" : "in the same way");
	}
	if (counts[BECAUSE] > 0) {
		ddp_text_add(text, "slurm-ddp: ");
		add_count(text, verdict, step, counts[BECAUSE]);
		ddp_text_add(text, " ended because of it\n");
	}
	if (early > 0)
		add_early(text, verdict, step, early);
	if (counts[LEFT] + counts[KILLED] > 0)
		add_grace(text, verdict, step, counts[LEFT], counts[KILLED]);
	if (counts[BY_SIGTERM] > 0)
		add_by_sigterm(text, verdict, step, counts[BY_SIGTERM]);
}

void ddp_verdict_add_alike_json(struct ddp_text *text,
				const struct ddp_verdict *verdict,
				const struct ddp_step *step)
{
	const char *comma = "";
	uint32_t i;

	ddp_text_add(text, ", \"alike\": [");
	for (i = 0; i < step->world_size; i++) {
		if (find_end(verdict, step, i) != ALIKE)
			continue;
		ddp_text_add(text, "%s%u", comma, i);
		comma = ", ";
	}
	ddp_text_add(text, "]");
}

/* ---- where nobody is named */

/*
 * Returns a node whose agent has left, or NULL. Sets at_once if all have at once, and
 * the step did not go on without one.
 */
static const struct ddp_step_node *find_left(const struct ddp_step *step,
					     bool *at_once)
{
	const struct ddp_step_node *left = NULL, *node;
	uint32_t i;

	*at_once = true;
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (!node->left || node->silent || node->told || (left &&
		    llabs(node->left_ns - left->left_ns) >
		    ms(DDP_SOON_MS)))
			*at_once = false;
		if (node->left && (!left || node->silent))
			left = node;
	}
	return left;
}

void ddp_verdict_add_unknown(struct ddp_text *text, const struct ddp_step *step)
{
	bool at_once;
	const struct ddp_step_node *left = find_left(step, &at_once);

	if (!left)
		return;
	ddp_text_add(text, "slurm-ddp: which rank failed first, if any, is not "
		     "known: ");
	if (at_once) {
		ddp_text_add(text, "the whole step was killed at once, as "
			     "scancel and MPI_Abort have it done\n");
		return;
	}
	ddp_text_add_quoted(text, "the ddp-agent of node %s %s", left->name,
			    left->silent ? "had stopped to answer" :
			    "ended before its ranks did");
	ddp_text_add(text, "\n");
}

void ddp_verdict_add_hidden(struct ddp_text *text, const struct ddp_step *step)
{
	ddp_text_add_quoted(text, "slurm-ddp: which rank failed first is not "
			    "known: the ddp-agent of node %s does not answer",
			    ddp_step_find_silent(step)->name);
	ddp_text_add(text, "\n");
}

/* Returns true if the rank has ended with 0; where *context is false, if not. */
static bool is_well(const struct ddp_step *step, uint32_t rank,
		    const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return (of->ended && of->status == 0) == *(const bool *)context;
}

void ddp_verdict_add_early(struct ddp_text *text, const struct ddp_step *step)
{
	static const bool yes = true, no = false;
	uint32_t i, runs = 0;

	for (i = 0; i < step->world_size; i++)
		runs += still_runs(step, i, NULL);
	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add(text, step, is_well, &yes);
	ddp_text_add(text, " ended with exit code 0 a while ago, and ");
	if (runs > 0) {
		ddp_who_add(text, step, still_runs, NULL);
		ddp_text_add(text, " still run%s", runs == 1 ? "s" : "");
	} else {
		ddp_text_add(text, "no end is known of ");
		ddp_who_add(text, step, is_well, &no);
	}
	ddp_text_add(text, "; do they wait for each other?\n");
}

void ddp_verdict_add_gone(struct ddp_text *text, const struct ddp_step *step)
{
	static const bool yes = true, no = false;
	uint32_t i, well = 0;

	for (i = 0; i < step->world_size; i++)
		well += is_well(step, i, &yes);
	if (well == 0 || step->known < step->world_size ||
	    well == step->world_size)
		return;
	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add(text, step, is_well, &yes);
	ddp_text_add(text, " had ended with exit code 0 when the step was "
		     "killed; did ");
	ddp_who_add(text, step, is_well, &no);
	ddp_text_add(text, " wait?\n");
}
