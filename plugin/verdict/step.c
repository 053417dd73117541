/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes and ranks of a step, filled from what its agents say. */
#define _GNU_SOURCE
#include "verdict/step.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "layout/tasks.h"
#include "verdict/execve.h"
#include "verdict/hang.h"

void ddp_step_clear(struct ddp_step *step)
{
	uint32_t i;

	ddp_hang_clear(step);
	for (i = 0; i < step->world_size; i++) {
		free(step->ranks[i].gpus);
		free(step->ranks[i].warning);
		free(step->ranks[i].message);
		free(step->ranks[i].cause);
		free(step->ranks[i].guess);
		free(step->ranks[i].tail);
		free(step->ranks[i].error);
	}
	free(step->ranks);
	free(step->nodes);
	free(step->slots);
	memset(step, 0, sizeof(*step));
}

static int begin(struct ddp_step *step, const struct ddp_wire *hello,
		 int64_t now_ns)
{
	if (hello->world_size == 0 || hello->world_size > DDP_RANK_MAX)
		return -1;
	step->ranks = calloc(hello->world_size, sizeof(*step->ranks));
	if (!step->ranks)
		return -1;
	step->world_size = hello->world_size;
	step->job_id = hello->job_id;
	step->step_id = hello->step_id;
	step->start_ns = now_ns;
	return 0;
}

/* The slot of a name, or the free one where it would be. */
static uint32_t *find_slot(const struct ddp_step *step, const char *name)
{
	uint32_t hash = 2166136261, index;	/* FNV-1a */
	const char *at;

	for (at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619;
	for (;; hash++) {
		index = step->slots[hash & (step->slot_count - 1)];
		if (index == 0 || strcmp(step->nodes[index - 1].name, name) == 0)
			return &step->slots[hash & (step->slot_count - 1)];
	}
}

/* The components of a heterogeneous step can share a node: its first counts. */
static void index_node(struct ddp_step *step, uint32_t node)
{
	uint32_t *slot = find_slot(step, step->nodes[node].name);

	if (*slot == 0)
		*slot = node + 1;
}

/* Make room for one more node. There are twice as many slots as nodes have
 * room. */
static int grow(struct ddp_step *step)
{
	uint32_t count = step->slot_count ? 2 * step->slot_count : 16, i;
	struct ddp_step_node *nodes;
	uint32_t *slots;

	if (2 * (step->node_count + 1) <= step->slot_count)
		return 0;
	nodes = realloc(step->nodes, count / 2 * sizeof(*nodes));
	if (!nodes)
		return -1;
	step->nodes = nodes;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -1;
	free(step->slots);
	step->slots = slots;
	step->slot_count = count;
	for (i = 0; i < step->node_count; i++)
		index_node(step, i);
	return 0;
}

int ddp_step_find_node(const struct ddp_step *step, const char *name)
{
	return step->node_count ? (int)*find_slot(step, name) - 1 : -1;
}

int ddp_step_add_node(struct ddp_step *step, const struct ddp_wire *hello,
		      int64_t now_ns)
{
	struct ddp_step_node *node;
	int lost;

	if (step->world_size == 0 && begin(step, hello, now_ns) < 0)
		return -1;
	if (hello->world_size != step->world_size)
		return -1;
	/* Of a heterogeneous job each component has an id; the job's is the
	 * lowest. */
	if (hello->job_id < step->job_id)
		step->job_id = hello->job_id;
	lost = ddp_step_find_node(step, hello->node);
	if (lost >= 0 && step->nodes[lost].unlaunched) {
		step->nodes[lost].count = hello->count;
		step->nodes[lost].trip_ns = INT64_MAX;
		return lost;
	}
	if (grow(step) < 0)
		return -1;
	node = &step->nodes[step->node_count];
	memset(node, 0, sizeof(*node));
	strcpy(node->name, hello->node);
	node->count = hello->count;
	node->trip_ns = INT64_MAX;
	index_node(step, step->node_count);
	return (int)step->node_count++;
}

static char *copy(const char *text)
{
	return *text ? strdup(text) : NULL;
}

void ddp_step_add_rank(struct ddp_step *step, uint32_t node,
		       const struct ddp_wire *wire)
{
	struct ddp_step_rank *rank;

	if (wire->rank >= step->world_size ||
	    step->ranks[wire->rank].known)
		return;
	rank = &step->ranks[wire->rank];
	rank->known = true;
	rank->node = node;
	rank->pid = wire->pid;
	rank->gpus = copy(wire->gpus);
	rank->warning = copy(wire->message);
	step->known++;
}

/* 1 is how Python and shells end by an error, so no code to agree on. */
static bool is_answer(struct ddp_step *step, uint32_t status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (step->saves && code == EX_TEMPFAIL)
		step->noticed = true;
	if (!step->noticed || code <= 1 ||
	    (step->answer && step->answer != code))
		return false;
	step->answer = code;
	return true;
}

void ddp_step_add_end(struct ddp_step *step, uint32_t node,
		      const struct ddp_wire *wire, int64_t now_ns)
{
	char tail[DDP_WIRE_TAIL_SIZE], cause[DDP_FAILURE_SIZE];
	struct ddp_step_rank *rank;

	if (wire->rank >= step->world_size)
		return;
	rank = &step->ranks[wire->rank];
	if (!rank->known || rank->ended || rank->node != node)
		return;
	strcpy(tail, wire->tail);
	ddp_execve_take(tail, wire->status, cause);
	rank->ended = true;
	rank->status = wire->status;
	rank->at_ns = (int64_t)wire->at_ns;
	rank->seen_ns = now_ns;
	rank->message = copy(wire->message);
	if (!*cause && strcmp(wire->cause, DDP_WIRE_GUESS) == 0)
		rank->guess = copy(wire->cause);
	else
		rank->cause = copy(*cause ? cause : wire->cause);
	rank->tail = copy(tail);
	if (step->ended++ == 0)
		step->end_ns = now_ns;
	step->last_end_ns = now_ns;
	step->nodes[node].ended++;
	rank->answered = is_answer(step, wire->status);
	step->failed |= wire->status != 0 && !rank->answered;
}

/* An order of two times of a node must not change when its clock is known better. */
static void correct_loss(struct ddp_step_node *node)
{
	int64_t at_ns = node->orphaned_ns + node->offset_ns;

	if (node->orphaned && node->trip_ns != INT64_MAX &&
	    at_ns < node->lost_ns)
		node->lost_ns = at_ns;
}

void ddp_step_add_orphaned(struct ddp_step *step, uint32_t node,
			   const struct ddp_wire *wire, int64_t now_ns)
{
	struct ddp_step_node *of = &step->nodes[node];

	step->failed = of->orphaned = true;
	of->orphaned_ns = (int64_t)wire->at_ns;
	of->lost_ns = now_ns;
	correct_loss(of);
}

void ddp_step_add_error(struct ddp_step *step, uint32_t node,
			const struct ddp_wire *wire)
{
	struct ddp_step_rank *rank;

	if (wire->rank >= step->world_size)
		return;
	rank = &step->ranks[wire->rank];
	if (!rank->known || rank->node != node || rank->error)
		return;
	rank->error = copy(wire->message);
	rank->error_ns = (int64_t)wire->at_ns;
}

void ddp_step_add_abort(struct ddp_step *step, uint32_t rank, int code,
			const char *cause, int64_t now_ns)
{
	struct ddp_step_rank *of = &step->ranks[rank];
	int64_t at_ns = now_ns;
	uint32_t i;

	for (i = 0; i < step->world_size; i++)
		if (step->ranks[i].ended && step->ranks[i].status != 0 &&
		    ddp_step_end_ns(step, i) < at_ns)
			at_ns = ddp_step_end_ns(step, i);
	if (!of->ended && step->ended++ == 0)
		step->end_ns = now_ns;
	of->ended = true;
	of->status = (uint32_t)code << 8;
	of->seen_ns = at_ns - 1;
	of->at_ns = of->seen_ns - step->nodes[of->node].offset_ns;
	if (!of->cause)
		of->cause = copy(cause);
	step->failed = true;
}

void ddp_step_add_pong(struct ddp_step *step, uint32_t node,
		       const struct ddp_wire *wire, int64_t now_ns)
{
	int64_t sent_ns = (int64_t)wire->ping_ns, trip_ns = now_ns - sent_ns;
	struct ddp_step_node *of = &step->nodes[node];

	if (trip_ns < 0)
		return;
	of->answered_ns = sent_ns;
	if (trip_ns >= of->trip_ns)
		return;
	of->trip_ns = trip_ns;
	of->offset_ns = sent_ns + trip_ns / 2 - (int64_t)wire->at_ns;
	correct_loss(of);
}

bool ddp_step_denies(const struct ddp_step *step, uint32_t rank,
		     int64_t at_ns)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	if (of->ended)
		return of->status == 0;
	return of->known && step->nodes[of->node].answered_ns > at_ns;
}

/* Nothing is known later than it was. */
int64_t ddp_step_end_ns(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *ended = &step->ranks[rank];
	const struct ddp_step_node *node = &step->nodes[ended->node];
	int64_t at_ns = ended->at_ns + node->offset_ns;

	if (node->trip_ns == INT64_MAX || at_ns > ended->seen_ns)
		return ended->seen_ns;
	return at_ns;
}

uint32_t ddp_step_count_open(const struct ddp_step *step)
{
	uint32_t i, count = 0;

	for (i = 0; i < step->node_count; i++)
		count += step->nodes[i].open;
	return count;
}

const struct ddp_step_node *ddp_step_find_silent(const struct ddp_step *step)
{
	const struct ddp_step_node *node;
	uint32_t i;

	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (node->silent && !node->lost && node->ended < node->count)
			return node;
	}
	return NULL;
}

bool ddp_step_is_over(const struct ddp_step *step)
{
	const struct ddp_step_node *node;
	uint32_t ranks = 0, i;

	for (i = 0; i < step->node_count; i++) {
		node = &step->nodes[i];
		if (node->open || node->left)
			return false;
		ranks += node->count;
	}
	return step->world_size > 0 && ranks == step->world_size;
}

bool ddp_step_is_watched(const struct ddp_step *step, uint32_t rank)
{
	const struct ddp_step_rank *of = &step->ranks[rank];

	return of->known && !step->nodes[of->node].left &&
	       !step->nodes[of->node].silent;
}

bool ddp_step_was_killed(uint32_t status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int ddp_step_code(uint32_t status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
		WEXITSTATUS(status);
}

int ddp_step_worst(const struct ddp_step *step)
{
	int worst = 0, code;
	uint32_t i;

	for (i = 0; i < step->world_size; i++) {
		code = ddp_step_code(step->ranks[i].status);
		if (step->ranks[i].ended && code > worst)
			worst = code;
	}
	return worst;
}
