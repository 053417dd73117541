/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a step hangs, who lags, and how that is said. */
#define _GNU_SOURCE
#include "verdict/hang.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proc/ras.h"
#include "proc/stack_text.h"
#include "verdict/names.h"

enum {
	BEHIND_MS = 5000,	/* samples are a second apart, on busy nodes
				 * more: this much is no accident */
	DEPTH_BYTES = 1024
};

void ddp_hang_add_pulse(struct ddp_step *step, uint32_t node,
			const struct ddp_wire *wire)
{
	step->nodes[node].idle_ms = wire->idle_ms;
}

static bool runs(const struct ddp_step *step, uint32_t rank)
{
	return step->ranks[rank].known && !step->ranks[rank].ended;
}

uint32_t ddp_hang_idle_ms(const struct ddp_step *step, int64_t now_ns)
{
	int64_t since_ms = (now_ns - step->last_end_ns) / 1000000;
	uint32_t i, idle_ms = UINT32_MAX;
	const struct ddp_step_node *node;

	if (step->world_size == 0 || step->known < step->world_size)
		return 0;
	for (i = 0; i < step->world_size; i++) {
		node = &step->nodes[step->ranks[i].node];
		if (!runs(step, i))
			continue;
		if (node->left || node->silent)
			return 0;
		if (node->idle_ms < idle_ms)
			idle_ms = node->idle_ms;
	}
	if (idle_ms == UINT32_MAX)
		return 0;
	return step->ended && since_ms < idle_ms ? (uint32_t)since_ms :
		idle_ms;
}

int ddp_hang_begin(struct ddp_step *step, uint32_t seconds)
{
	struct ddp_hang *hang = calloc(1, sizeof(*hang));

	if (!hang)
		return -1;
	hang->seconds = seconds;
	hang->ranks = calloc(step->world_size, sizeof(*hang->ranks));
	if (!hang->ranks) {
		free(hang);
		return -1;
	}
	ddp_hang_clear(step);
	step->hang = hang;
	return 0;
}

void ddp_hang_clear(struct ddp_step *step)
{
	struct ddp_hang *hang = step->hang;
	uint32_t i;

	if (!hang)
		return;
	for (i = 0; i < step->world_size; i++) {
		free(hang->ranks[i].where);
		free(hang->ranks[i].stack);
	}
	free(hang->ranks);
	free(hang);
	step->hang = NULL;
}

static char *copy(const char *text)
{
	return *text ? strdup(text) : NULL;
}

void ddp_hang_add_detail(struct ddp_step *step, uint32_t node,
			 const struct ddp_wire *wire)
{
	struct ddp_hang_rank *rank;

	if (!step->hang || step->hang->judged_ns ||
	    wire->rank >= step->world_size || !runs(step, wire->rank) ||
	    step->ranks[wire->rank].node != node)
		return;
	rank = &step->hang->ranks[wire->rank];
	if (rank->told)
		return;
	rank->told = true;
	rank->state = wire->status < 128 && isalpha((int)wire->status) ?
		(char)wire->status : '?';
	rank->idle_ms = wire->idle_ms;
	rank->beats = wire->beats;
	rank->depth = wire->depth;
	rank->behind = wire->behind;
	rank->where = copy(wire->message);
	rank->stack = copy(wire->tail);
}

bool ddp_hang_complete(const struct ddp_step *step)
{
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (runs(step, i) && !step->hang->ranks[i].told)
			return false;
	return true;
}

static bool is_stopped(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_hang_rank *of = &step->hang->ranks[rank];

	return of->told && (of->state == 'T' || of->state == 't');
}

static bool is_blocked(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_hang_rank *of = &step->hang->ranks[rank];

	return of->told && of->state == 'D';
}

static bool has_ended(const struct ddp_step *step, uint32_t rank)
{
	return step->ranks[rank].known && step->ranks[rank].ended;
}

static bool has_not_ended(const struct ddp_step *step, uint32_t rank)
{
	return !has_ended(step, rank);
}

static bool most_have_ended(const struct ddp_step *step)
{
	return step->ended > step->world_size - step->ended;
}

/* What all or none are sets nobody apart. */
static bool mark(struct ddp_step *step,
		 bool (*is)(const struct ddp_step *, uint32_t))
{
	uint32_t i, count = 0;

	for (i = 0; i < step->world_size; i++) {
		step->hang->ranks[i].lags = is(step, i);
		count += step->hang->ranks[i].lags;
	}
	return count > 0 && count < step->world_size;
}

static bool is_same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/*
 * Whether they wait in the same place of the program: in the same way, with
 * about as much on the stack. Ranks that run the same code get there by the
 * same calls, each of which takes the same room but for alignment.
 */
static bool is_same_place(const struct ddp_hang_rank *a,
			  const struct ddp_hang_rank *b)
{
	return is_same_text(a->where, b->where) &&
	       (!a->depth || !b->depth ||
		llabs((int64_t)a->depth - b->depth) < DEPTH_BYTES);
}

static bool has_same_beats(const struct ddp_hang_rank *a,
			   const struct ddp_hang_rank *b)
{
	return a->beats == b->beats;
}

static bool is_as_idle(const struct ddp_hang_rank *a,
		       const struct ddp_hang_rank *b)
{
	return llabs((int64_t)a->idle_ms - b->idle_ms) < BEHIND_MS;
}

typedef bool alike(const struct ddp_hang_rank *, const struct ddp_hang_rank *);

static uint32_t count_alike(const struct ddp_step *step, uint32_t rank,
			    alike *is)
{
	const struct ddp_hang_rank *ranks = step->hang->ranks;
	uint32_t i, count = 0;

	for (i = 0; i < step->world_size; i++)
		count += ranks[i].told && is(&ranks[i], &ranks[rank]);
	return count;
}

/*
 * A rank that is as more than half of those that run are; world_size if there
 * is none. By voting: whoever has a majority is left over when each rank that
 * differs takes one away.
 */
static uint32_t find_majority(const struct ddp_step *step, alike *is)
{
	const struct ddp_hang_rank *ranks = step->hang->ranks;
	uint32_t i, chosen = step->world_size, votes = 0, count = 0;

	for (i = 0; i < step->world_size; i++) {
		if (!ranks[i].told)
			continue;
		count++;
		if (votes == 0)
			chosen = i;
		votes += votes == 0 || is(&ranks[i], &ranks[chosen]) ? 1 :
			UINT32_MAX;
	}
	if (chosen < step->world_size &&
	    2 * count_alike(step, chosen, is) <= count)
		chosen = step->world_size;
	return chosen;
}

/* Those who are not as most are; behind: only those who have less, or waited
 * for longer. */
static bool mark_minority(struct ddp_step *step, alike *is,
			  enum ddp_hang_why why)
{
	struct ddp_hang_rank *ranks = step->hang->ranks, *most;
	uint32_t i, majority = find_majority(step, is);
	bool any = false, behind;

	if (majority == step->world_size)
		return false;
	most = &ranks[majority];
	for (i = 0; i < step->world_size; i++) {
		behind = why == DDP_HANG_PLACE ||
			(why == DDP_HANG_BEATS ? ranks[i].beats < most->beats :
			 ranks[i].idle_ms > most->idle_ms);
		ranks[i].lags = ranks[i].told && behind && !is(&ranks[i], most);
		any |= ranks[i].lags;
	}
	return any;
}

static enum ddp_hang_why find_why(struct ddp_step *step)
{
	uint32_t i;

	if (mark(step, is_stopped))
		return DDP_HANG_STOPPED;
	if (mark(step, is_blocked))
		return DDP_HANG_BLOCKED;
	if (mark(step, most_have_ended(step) ? has_not_ended : has_ended))
		return most_have_ended(step) ? DDP_HANG_LEFT : DDP_HANG_ENDED;
	if (mark_minority(step, has_same_beats, DDP_HANG_BEATS))
		return DDP_HANG_BEATS;
	if (mark_minority(step, is_same_place, DDP_HANG_PLACE))
		return DDP_HANG_PLACE;
	if (mark_minority(step, is_as_idle, DDP_HANG_IDLE))
		return DDP_HANG_IDLE;
	for (i = 0; i < step->world_size; i++)
		step->hang->ranks[i].lags = false;
	return DDP_HANG_NOBODY;
}

static bool is_behind(const struct ddp_step *step, uint32_t rank)
{
	return step->hang->ranks[rank].behind > 0;
}

/*
 * RAS has compared the ranks of each communicator: take it if it names fewer
 * than what sets the ranks of the step apart.
 */
static void ask_nccl(struct ddp_step *step)
{
	struct ddp_hang *hang = step->hang;
	uint32_t i, named = 0, behind = 0;

	for (i = 0; i < step->world_size; i++) {
		named += hang->ranks[i].lags;
		behind += is_behind(step, i);
	}
	if ((hang->why != DDP_HANG_NOBODY && hang->why < DDP_HANG_BEATS) ||
	    behind == 0 || behind >= (named ? named : step->world_size))
		return;
	mark(step, is_behind);
	hang->why = DDP_HANG_NCCL;
}

void ddp_hang_judge(struct ddp_step *step, int64_t now_ns)
{
	step->hang->why = find_why(step);
	ask_nccl(step);
	step->hang->judged_ns = now_ns;
}

/* ---- words */

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
	    !is_same_text(a->where, b->where))
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
	ddp_text_add_json(text, of->where);
	ddp_text_add(text, ", \"idle_s\": %u.%03u, \"heartbeats\": %" PRIu64
		     ", \"nccl_behind\": %d, \"stack\": ",
		     of->idle_ms / 1000, of->idle_ms % 1000, of->beats,
		     of->behind == DDP_RAS_MISSING ? -1 : (int)of->behind);
	ddp_text_add_json_lines(text, of->stack);
}
