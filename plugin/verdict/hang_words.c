/* SPDX-License-Identifier: BSD-3-Clause */
/* How a hang is said: to people, and as JSON. */
#define _GNU_SOURCE
#include "verdict/hang.h"

#include <inttypes.h>
#include <string.h>

#include "proc/ras.h"
#include "proc/stack_text.h"
#include "verdict/who.h"

enum { LAGS_MAX = 8, GROUPS_MAX = 8 };	/* of each, so many are printed */

static const struct {
	const char *name, *words;
} whys[] = {
	[DDP_HANG_NOBODY] = { "none", NULL },
	[DDP_HANG_STOPPED] = { "stopped", "stopped" },
	[DDP_HANG_BLOCKED] = { "blocked", "in uninterruptible wait" },
	[DDP_HANG_ENDED] = { "ended", "ended before the others" },
	[DDP_HANG_LEFT] = { "left", "still running when most have ended" },
	[DDP_HANG_BEATS] = { "heartbeats", "behind in heartbeats" },
	[DDP_HANG_PLACE] = { "place", "waiting elsewhere than the others" },
	[DDP_HANG_IDLE] = { "idle", "idle for longer than the others" },
	[DDP_HANG_NCCL] = { "nccl", "behind in NCCL's operations" },
};

static bool lags(const struct ddp_step *step, uint32_t rank,
		 const void *context)
{
	(void)context;
	return step->hang->ranks[rank].lags;
}

static void add_first(struct ddp_text *text, const struct ddp_step *step)
{
	const struct ddp_hang *hang = step->hang;
	uint32_t count;

	ddp_text_add(text, "slurm-ddp: no rank has made progress for %u s, and "
		     "so the step ends; ", hang->seconds);
	if (hang->why == DDP_HANG_NOBODY) {
		ddp_text_add(text, "no rank stands out\n");
		return;
	}
	count = ddp_who_add(text, step, lags, NULL);
	ddp_text_add(text, " hold%s the others up: %s\n",
		     count == 1 ? "s" : "", whys[hang->why].words);
}

/* "sleeping in futex_wait_queue", "running", "stopped in do_signal_stop" */
static void add_state(struct ddp_text *text, const struct ddp_step *step,
		      uint32_t rank)
{
	const struct ddp_hang_rank *of = &step->hang->ranks[rank];
	static const struct {
		char state;
		const char *words;
	} states[] = {
		{ 'R', "running" }, { 'S', "sleeping" }, { 'I', "sleeping" },
		{ 'D', "in uninterruptible wait" }, { 'T', "stopped" },
		{ 't', "stopped by a debugger" }, { 'Z', "ending" },
	};
	const char *words = NULL;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i].state == of->state)
			words = states[i].words;
	if (step->ranks[rank].ended)
		words = "ended";
	else if (!of->told)
		words = "not known";
	ddp_text_add(text, "%s", words ? words : "in another state");
	if (of->where)
		ddp_text_add_quoted(text, " in %s", of->where);
}

static void add_behind(struct ddp_text *text, const struct ddp_hang_rank *rank)
{
	if (rank->behind == DDP_RAS_MISSING)
		ddp_text_add(text, "; NCCL: it does not answer");
	else if (rank->behind > 0)
		ddp_text_add(text, "; NCCL: %u operation%s behind",
			     rank->behind, rank->behind == 1 ? "" : "s");
}

/* Where its stack says that it waits. */
static void add_function(struct ddp_text *text,
			 const struct ddp_hang_rank *rank)
{
	char name[DDP_STACK_NAME_SIZE];

	ddp_stack_find(rank->stack ? rank->stack : "", name);
	if (*name)
		ddp_text_add_quoted(text, ", %s", name);
}

static void add_stack(struct ddp_text *text, const struct ddp_step *step,
		      uint32_t rank)
{
	const char *stack = step->hang->ranks[rank].stack;
	size_t length;

	for (; stack && *stack; stack += length + (stack[length] == '\n')) {
		length = strcspn(stack, "\n");
		ddp_text_add(text, "slurm-ddp: ");
		ddp_who_add_word(text, step);
		ddp_text_add(text, " %u: | ", rank);
		ddp_text_add_quoted(text, "%.*s", (int)length, stack);
		ddp_text_add(text, "\n");
	}
}

static void add_rank(struct ddp_text *text, const struct ddp_step *step,
		     uint32_t rank)
{
	const struct ddp_hang_rank *of = &step->hang->ranks[rank];
	const struct ddp_step_rank *known = &step->ranks[rank];

	ddp_text_add(text, "slurm-ddp: ");
	ddp_who_add_word(text, step);
	ddp_text_add(text, " %u on ", rank);
	ddp_text_add_string(text, step->nodes[known->node].name);
	ddp_text_add(text, " (");
	if (known->gpus)
		ddp_text_add_quoted(text, "GPU %s, ", known->gpus);
	ddp_text_add(text, "pid %u): ", known->pid);
	add_state(text, step, rank);
	if (of->told)
		ddp_text_add(text, "; last progress %u s ago, %" PRIu64
			     " heartbeats", of->idle_ms / 1000, of->beats);
	add_behind(text, of);
	ddp_text_add(text, "\n");
	add_stack(text, step, rank);
}

static bool is_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Whether a rank, like that of context, does not lag and does the same. */
static bool is_like(const struct ddp_step *step, uint32_t rank,
		    const void *context)
{
	const uint32_t other = *(const uint32_t *)context;
	const struct ddp_hang_rank *a = &step->hang->ranks[rank];
	const struct ddp_hang_rank *b = &step->hang->ranks[other];
	char of_a[DDP_STACK_NAME_SIZE], of_b[DDP_STACK_NAME_SIZE];

	if (a->lags || a->told != b->told || a->state != b->state ||
	    a->behind != b->behind ||
	    step->ranks[rank].ended != step->ranks[other].ended ||
	    !is_same(a->where, b->where))
		return false;
	ddp_stack_find(a->stack ? a->stack : "", of_a);
	ddp_stack_find(b->stack ? b->stack : "", of_b);
	return strcmp(of_a, of_b) == 0;
}

/* Whether a rank is the first of those that are like it. */
static bool is_first(const struct ddp_step *step, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < rank; i++)
		if (is_like(step, i, &rank))
			return false;
	return true;
}

/* The others, those that do the same in one line. */
static void add_groups(struct ddp_text *text, const struct ddp_step *step)
{
	uint32_t i, groups = 0;

	for (i = 0; i < step->world_size; i++) {
		if (step->hang->ranks[i].lags || !is_first(step, i))
			continue;
		if (groups++ == GROUPS_MAX) {
			ddp_text_add(text, "slurm-ddp: other ranks do "
				     "something else\n");
			return;
		}
		ddp_text_add(text, "slurm-ddp: ");
		ddp_who_add(text, step, is_like, &i);
		ddp_text_add(text, ": ");
		add_state(text, step, i);
		add_function(text, &step->hang->ranks[i]);
		add_behind(text, &step->hang->ranks[i]);
		ddp_text_add(text, "\n");
	}
}

void ddp_hang_add_words(struct ddp_text *text, const struct ddp_step *step)
{
	uint32_t i, shown = 0;

	add_first(text, step);
	for (i = 0; i < step->world_size && shown < LAGS_MAX; i++) {
		if (!step->hang->ranks[i].lags)
			continue;
		add_rank(text, step, i);
		shown++;
	}
	add_groups(text, step);
}

void ddp_hang_add_json(struct ddp_text *text, const struct ddp_step *step)
{
	const char *comma = "";
	uint32_t i;

	ddp_text_add(text, ", \"seconds\": %u, \"why\": \"%s\", \"lagging\": [",
		     step->hang->seconds, whys[step->hang->why].name);
	for (i = 0; i < step->world_size; i++) {
		if (!step->hang->ranks[i].lags)
			continue;
		ddp_text_add(text, "%s%u", comma, i);
		comma = ", ";
	}
	ddp_text_add(text, "]");
}

void ddp_hang_add_rank_json(struct ddp_text *text, const struct ddp_step *step,
			    uint32_t rank)
{
	const struct ddp_hang_rank *of;

	if (!step->hang || !step->hang->judged_ns ||
	    !step->hang->ranks[rank].told)
		return;
	of = &step->hang->ranks[rank];
	ddp_text_add(text, ", \"state\": \"%c\", \"waits_in\": ", of->state);
	if (of->where)
		ddp_text_add_json(text, of->where);
	else
		ddp_text_add(text, "null");
	ddp_text_add(text, ", \"idle_s\": %u.%03u, \"heartbeats\": %" PRIu64
		     ", \"nccl_behind\": %d, \"stack\": ",
		     of->idle_ms / 1000, of->idle_ms % 1000, of->beats,
		     of->behind == DDP_RAS_MISSING ? -1 : (int)of->behind);
	ddp_text_add_json_lines(text, of->stack);
}
