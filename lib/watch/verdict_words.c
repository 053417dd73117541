/* SPDX-License-Identifier: BSD-3-Clause */
/* How a verdict is said, to people. */
#define _GNU_SOURCE
#include "watch/verdict.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "watch/hang.h"
#include "watch/link.h"
#include "watch/who.h"

enum { AT_ONCE_NS = 500000000 };	/* Slurm kills all nodes of a step */

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

/* The last lines of a rank's stderr; what ends without a newline is one. */
static void add_tail(struct ddp_text *text, uint32_t rank, const char *tail)
{
	const char *at = tail + strlen(tail);
	int lines = DDP_VERDICT_LINES;
	size_t length;

	if (at > tail && at[-1] == '\n')
		at--;
	while (at > tail && (at[-1] != '\n' || --lines > 0))
		at--;
	for (; *at; at += length + (at[length] == '\n')) {
		length = strcspn(at, "\n");
		ddp_text_add(text, "slurm-ddp: rank %u: | ", rank);
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
 * A rank that lacks a peer ends by an exit code, or aborts. Where its end has
 * another cause, or was sent to it, it did not wait for one.
 */
static bool may_have_waited(const struct ddp_step_rank *rank)
{
	return !rank->cause && (!WIFSIGNALED(rank->status) ||
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
	ddp_text_add(text, " before; did rank %u wait for %s?\n", rank,
		     count == 1 ? "it" : "them");
}

static void add_rank(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	const struct ddp_step_rank *rank = &step->ranks[verdict->rank];

	ddp_text_add(text, "slurm-ddp: rank %u failed first on ",
		     verdict->rank);
	ddp_text_add_string(text, step->nodes[rank->node].name);
	ddp_text_add(text, " (");
	if (rank->gpus)
		ddp_text_add_quoted(text, "GPU %s, ", rank->gpus);
	ddp_text_add(text, "pid %u) after ", rank->pid);
	add_seconds(text, verdict->after_ns);
	ddp_text_add(text, ": ");
	if (rank->cause)
		ddp_text_add_quoted(text, "%s, ", rank->cause);
	add_status(text, rank->status);
	if (rank->message)
		ddp_text_add_quoted(text, ": %s", rank->message);
	ddp_text_add(text, "\n");
	add_had_ended(text, verdict->rank, step);
	if (rank->tail)
		add_tail(text, verdict->rank, rank->tail);
}

static void add_node(struct ddp_text *text, const struct ddp_verdict *verdict,
		     const struct ddp_step *step)
{
	const struct ddp_step_node *node = &step->nodes[verdict->node];

	ddp_text_add(text, "slurm-ddp: node ");
	ddp_text_add_string(text, node->name);
	ddp_text_add(text, " was lost first, after ");
	add_seconds(text, verdict->after_ns);
	if (node->orphaned)
		ddp_text_add(text, ": its slurmstepd has ended\n");
	else if (node->unlaunched)
		ddp_text_add(text, ": srun could not start tasks there\n");
	else
		ddp_text_add(text, ": it has not answered for %d s\n",
			     DDP_LINK_SILENCE_MS / 1000);
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
}

void ddp_verdict_add_others(struct ddp_text *text, uint32_t others)
{
	if (others > 0)
		ddp_text_add(text, "slurm-ddp: %u other rank%s ended because "
			     "of it\n", others, others == 1 ? "" : "s");
}

/* Whether all agents were killed at once; and one that has left; or NULL. */
static const struct ddp_step_node *find_left(const struct ddp_step *step,
					     bool *at_once)
{
	const struct ddp_step_node *left = NULL, *node;
	uint32_t i;

	*at_once = true;
	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (!node->left || node->silent || (left &&
		    llabs(node->left_ns - left->left_ns) > AT_ONCE_NS))
			*at_once = false;
		if (node->left && (!left || node->silent))
			left = node;
	}
	return left;
}

void ddp_verdict_add_unknown(struct ddp_text *text, const struct ddp_step *step,
			     bool went_on)
{
	bool at_once;
	const struct ddp_step_node *left = find_left(step, &at_once);

	if (!left)
		return;
	ddp_text_add(text, "slurm-ddp: which rank failed first, if any, is not "
		     "known: ");
	if (at_once && !went_on) {
		ddp_text_add(text, "the whole step was killed at once, as "
			     "scancel and MPI_Abort have it done\n");
		return;
	}
	ddp_text_add_quoted(text, "the ddp-agent of node %s %s", left->name,
			    left->silent ? "had stopped to answer" :
			    "ended before its ranks did");
	ddp_text_add(text, "\n");
}

static bool has_ended(const struct ddp_step *step, uint32_t rank,
		      const void *context)
{
	return step->ranks[rank].ended == *(const bool *)context;
}

void ddp_verdict_add_early(struct ddp_text *text, const struct ddp_step *step)
{
	static const bool yes = true, no = false;

	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add(text, step, has_ended, &yes);
	ddp_text_add(text, " ended with exit code 0 a while ago, and ");
	ddp_who_add(text, step, has_ended, &no);
	ddp_text_add(text, " still run%s; do they wait for each other?\n",
		     step->world_size - step->ended == 1 ? "s" : "");
}

static bool is_well(const struct ddp_step *step, uint32_t rank,
		    const void *context)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return (of->ended && of->status == 0) == *(const bool *)context;
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
