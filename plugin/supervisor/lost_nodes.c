/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are lost.
 *
 * While tasks run, the connection to a node's agent tells. Before they have begun
 * srun says so of some nodes. For others it waits, up to ten minutes, without a
 * word: where a link breaks while tasks are started, as where a prolog takes long.
 * So a connection to the node's slurmd tells the two apart: what still runs its
 * prolog accepts one.
 */
#define _GNU_SOURCE
#include "supervisor/lost_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "supervisor/attempt.h"
#include "supervisor/slurmds.h"
#include "util/clock.h"
#include "verdict/times.h"

enum {
	BEGIN_MS = 2000,	/* in which tasks usually begin */
	SLOW_MS = 60000,	/* a node that takes longer to begin is told of */
	END_MS = 600000,	/* then srun itself gives up */
	TICK_MS = 250,
	MANY = 256		/* nodes that have begun since are left alone */
};

/* ---- while tasks run */

void ddp_node_lose(struct ddp_step *step, struct ddp_step_node *node, int why,
		   int64_t heard_ns)
{
	if (why == 0 || why == EPROTO || why == ECONNRESET || why == EPIPE ||
	    why == ENOBUFS) {
		node->left = true;
		node->left_ns = ddp_clock_ns();
	} else if (!node->orphaned) {
		node->lost = step->failed = true;
		node->lost_ns = heard_ns;
	}
}

/* ---- before their tasks have begun */

static void lose(struct ddp_attempt *attempt, const char *name, bool silent,
		 int64_t now_ns)
{
	struct ddp_step *step = &attempt->facts.step;
	struct ddp_wire wire = {
		.job_id = step->job_id, .step_id = step->step_id,
		.world_size = step->world_size ? step->world_size :
			      attempt->child.launch.tasks,
	};
	struct ddp_step_node *node;
	int index;

	/* Its tasks have started, or this was said before. */
	if (ddp_step_find_node(step, name) >= 0)
		return;
	snprintf(wire.node, sizeof(wire.node), "%s", name);
	index = ddp_step_add_node(step, &wire, step->world_size ? now_ns :
				  ms(attempt->child.launched_ms));
	if (index < 0)
		return;
	node = &step->nodes[index];
	node->lost = node->unlaunched = step->failed = true;
	node->awaited = silent;
	node->lost_ns = now_ns;
}

/* A node where srun says that it could not start tasks is lost. */
static void find_unlaunched(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_step *step = &attempt->facts.step;
	unsigned int job_id, step_id;
	char *lines, *line, *save, name[DDP_WIRE_NODE_SIZE];

	if (!attempt->facts.said.unlaunched.length ||
	    (!step->world_size && !attempt->child.launched_ms))
		return;
	lines = ddp_text_finish(&attempt->facts.said.unlaunched);
	for (line = lines ? strtok_r(lines, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%u %u %255s", &job_id, &step_id, name) == 3 &&
		    job_id == step->job_id && step_id == step->step_id &&
		    !attempt->facts.failed_ns)
			lose(attempt, name, false, now_ns);
	free(lines);
}

/* Returns true if srun waits for nodes of which it says nothing. */
static bool waits(const struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_absent *absent = &attempt->absent;
	const struct ddp_step *step = &attempt->facts.step;

	return attempt->child.launched_ms && !attempt->child.ended &&
	       now_ns - ms(attempt->child.launched_ms) < ms(END_MS) &&
	       !(absent->asked && absent->out < 0) && !step->failed &&
	       (!step->world_size || step->known < step->world_size);
}

/* The helper. */
static int watch_slurmds(const void *context)
{
	const struct ddp_attempt *attempt = context;
	const struct ddp_restart *restart = &attempt->wish->restart;
	/* Agents of another component of the job may have been the first. */
	const struct ddp_slurmds_wish wish = {
		.job_id = attempt->child.launch.job_id,
		.step_id = attempt->child.launch.step_id,
		.step = &attempt->facts.step,
		.other = restart->spares ? restart->names[restart->count] : NULL,
	};

	prctl(PR_SET_NAME, "ddp-slurmds");
	/* A user has nothing from scontrol's complaints. */
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	return ddp_slurmds_watch(&wish);
}

/* Reads what has come, and returns a copy of the last whole line; NULL: none. */
static char *read_state(struct ddp_absent *absent)
{
	struct ddp_text *told = &absent->told;
	char bytes[4096], *end, *begin;
	ssize_t got;

	while ((got = read(absent->out, bytes, sizeof(bytes))) > 0)
		ddp_text_add_bytes(told, bytes, (size_t)got);
	if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(absent->out);
		absent->out = -1;
	}
	end = told->failed || !told->data ? NULL :
	      memrchr(told->data, '\n', told->length);
	if (!end)
		return NULL;
	begin = memrchr(told->data, '\n', (size_t)(end - told->data));
	begin = begin ? begin + 1 : told->data;
	told->length -= (size_t)(begin - told->data);
	memmove(told->data, begin, told->length);
	return strndup(told->data, (size_t)(end - begin));
}

/* Starts the helper. Once many nodes have begun another one takes its place, which
 * leaves these alone. */
static void start(struct ddp_attempt *attempt)
{
	struct ddp_absent *absent = &attempt->absent;

	ddp_absent_clear(attempt);
	absent->out = ddp_child_ask(&attempt->child, watch_slurmds, attempt);
	absent->asked = true;
	absent->begun = attempt->facts.step.node_count;
}

/* The next node of a line that has not begun, after its sign; NULL: none. */
static char *next_absent(const struct ddp_step *step, char **line)
{
	char *word;

	do
		word = strsep(line, " ");
	while (word && (!*word || ddp_step_find_node(step, word + 1) >= 0));
	return word;
}

static void say_absent(struct ddp_attempt *attempt, const char *name)
{
	struct ddp_text text = { 0 };

	if (attempt->absent.told_lost)
		return;
	attempt->absent.told_lost = true;
	ddp_text_add_quoted(&text, "slurm-ddp: node %s is lost, as its slurmd "
			    "does not answer; the step ends once the other "
			    "nodes have begun, too", name);
	ddp_text_add(&text, "\n");
	ddp_relay_say(&attempt->relay, &text);
}

/* An administrator alone can tell what keeps such nodes. */
static void say_slow(struct ddp_attempt *attempt, const char *first,
		     size_t count, int64_t now_ns)
{
	struct ddp_text text = { 0 };

	if (attempt->absent.told_slow || count == 0 ||
	    now_ns - ms(attempt->child.launched_ms) < ms(SLOW_MS))
		return;
	attempt->absent.told_slow = true;
	ddp_text_add_quoted(&text, "slurm-ddp: no ddp-agent has come from node "
			    "%s", first);
	if (count > 1)
		ddp_text_add(&text, " and %zu other%s", count - 1,
			     count > 2 ? "s" : "");
	ddp_text_add(&text, " within %d s, though %s answers: a prolog or an "
		     "image takes long, slurmstepd has died, or the node is "
		     "not watched\n", SLOW_MS / 1000,
		     count > 1 ? "each slurmd" : "its slurmd");
	ddp_relay_say(&attempt->relay, &text);
}

/*
 * A rank that begins on another node when its step has been given up would meet
 * the next attempt there. So where there is one, all others must have begun.
 */
static void judge(struct ddp_attempt *attempt, char *line, int64_t now_ns)
{
	const struct ddp_restart *restart = &attempt->wish->restart;
	const struct ddp_step *step = &attempt->facts.step;
	char *copy = strdup(line), *at = copy, *node, *slow = NULL;
	size_t answer = 0, others = 0;

	while ((node = next_absent(step, &at))) {
		others += *node != '-';
		if (*node == '+' && answer++ == 0)
			slow = node + 1;
	}
	say_slow(attempt, slow, answer, now_ns);
	while ((node = next_absent(step, &line))) {
		if (*node != '-')
			continue;
		if (others > 0 && restart->done < restart->max)
			say_absent(attempt, node + 1);
		else
			lose(attempt, node + 1, true, now_ns);
	}
	free(copy);
}

static void look(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_absent *absent = &attempt->absent;
	char *line;

	if (!absent->asked ||
	    attempt->facts.step.node_count >= absent->begun + MANY)
		start(attempt);
	absent->next_ns = now_ns + ms(TICK_MS);
	line = absent->out < 0 ? NULL : read_state(absent);
	if (line)
		judge(attempt, line, now_ns);
	free(line);
}

void ddp_absent_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	find_unlaunched(attempt, now_ns);
	if (!waits(attempt, now_ns))
		ddp_absent_clear(attempt);
	else if (now_ns - ms(attempt->child.launched_ms) >= ms(BEGIN_MS) &&
		 now_ns >= attempt->absent.next_ns)
		look(attempt, now_ns);
}

int ddp_absent_timeout_ms(const struct ddp_attempt *attempt, int64_t now_ns)
{
	return waits(attempt, now_ns) ? TICK_MS : -1;
}

void ddp_absent_clear(struct ddp_attempt *attempt)
{
	struct ddp_absent *absent = &attempt->absent;

	if (!absent->asked)
		return;
	if (absent->out >= 0)
		close(absent->out);
	ddp_child_end(&attempt->child.asker);
	free(absent->told.data);
	absent->told = (struct ddp_text){ 0 };
	absent->out = -1;
}
