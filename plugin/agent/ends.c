/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of tasks. That a process has ended is seen at once, so that the
 * order is right. How it ended slurmstepd says; but it may be slow to, and
 * mpi/pmix may have Slurm kill the step, and this agent with it, before.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "agent/state.h"
#include "node/pidfd.h"
#include "options/plugin.h"
#include "util/file.h"

#define NS_PER_S UINT64_C(1000000000)

enum { BOTH_NS = 1000000 };	/* two clocks are read within this time */

/*
 * The agent tells only the first failure of its node where there is no supervisor.
 * Slurm may have ended that rank by SIGTERM: on a slow node a rank writes its error,
 * and ranks elsewhere that fail by it end sooner.
 */
static void keep_first(struct ddp_agent *agent, uint32_t task, int status)
{
	if (status == 0 || agent->failed)
		return;
	agent->failed = true;
	agent->has_first = ddp_errors_find_first(agent->node, agent->count,
						 task, &agent->first);
	if (agent->talk.state == DDP_TALK_OFF)
		ddp_ends_tell(agent);
}

void ddp_ends_tell(struct ddp_agent *agent)
{
	if (agent->has_first)
		ddp_errors_tell(&agent->first, agent->host);
	agent->has_first = false;
}

/* The time of the error file, by the clock of the messages. */
static uint64_t get_time(const struct ddp_error_file *error, uint64_t ended_ns)
{
	int tries = 100;	/* a tracer may hold up each */
	int64_t clock_ns, age;
	struct timespec now;
	uint64_t at_ns;

	/* If this process stands still in between, the error seems older. */
	do {
		clock_ns = ddp_clock_ns();
		clock_gettime(CLOCK_REALTIME, &now);
	} while (ddp_clock_ns() - clock_ns > BOTH_NS && --tries > 0);
	age = (now.tv_sec - error->at.tv_sec) * (int64_t)NS_PER_S +
		now.tv_nsec - error->at.tv_nsec;
	if (age < 0 || age > clock_ns)
		return ended_ns;
	at_ns = (uint64_t)(clock_ns - age);
	return at_ns < ended_ns ? at_ns : ended_ns;
}

void ddp_ends_errors(struct ddp_agent *agent)
{
	struct ddp_error_file error;
	struct ddp_wire wire;
	uint32_t i;

	for (i = 0; i < agent->count; i++) {
		if (agent->tasks[i].ended ||
		    !ddp_errors_read(&agent->node->slots[i], &error))
			continue;
		wire = (struct ddp_wire){
			.kind = DDP_WIRE_ERROR,
			.rank = agent->node->slots[i].rank,
			.at_ns = get_time(&error, (uint64_t)ddp_clock_ns()),
		};
		snprintf(wire.message, sizeof(wire.message), "%s",
			 error.message);
		ddp_talk_send(agent, &wire);
	}
}

static void describe(struct ddp_agent *agent, uint32_t task, int status,
		     struct ddp_wire *end)
{
	const struct ddp_watched *watched = &agent->tasks[task];
	const struct ddp_slot *slot = &agent->node->slots[task];
	struct ddp_error_file error;

	end->kind = DDP_WIRE_END;
	end->rank = slot->rank;
	end->status = (uint32_t)status;
	end->at_ns = watched->gone_ns ? watched->gone_ns :
		(uint64_t)ddp_clock_ns();
	if (status == 0)
		return;
	snprintf(end->message, sizeof(end->message), "%s", slot->refusal);
	if (ddp_errors_read(slot, &error)) {
		snprintf(end->message, sizeof(end->message), "%s",
			 error.message);
		end->at_ns = get_time(&error, end->at_ns);
	}
	ddp_cause_find(agent, task, status, end->cause);
	ddp_tee_tail(agent->tee, task, end->tail);
}

static void report(struct ddp_agent *agent, uint32_t task, int status)
{
	struct ddp_wire *end = calloc(1, sizeof(*end));

	if (!end)
		return;
	describe(agent, task, status, end);
	if (agent->talk.state == DDP_TALK_DIALING) {
		agent->tasks[task].end = end;
		return;
	}
	ddp_talk_send(agent, end);
	free(end);
}

/*
 * Returns what slurmstepd has not read yet; 0: it has, or the kernel does not
 * say. Newer kernels (6.18) do not of a task that the plugin has refused, as
 * that has executed nothing.
 */
static int read_status(const struct ddp_watched *watched,
		       const struct ddp_slot *slot)
{
	struct ddp_kernel_process process = { .status = 0 };
	char *text = ddp_file_read_of(slot->pid, "stat");
	bool read = text && ddp_kernel_read_process(text, &process) == 0 &&
		    process.state == 'Z' &&
		    ddp_pidfd_kill(watched->pidfd, slot->pid, 0) == 0;

	free(text);
	if (!read)
		return 0;
	return process.status == 0 && slot->refusal[0] ? DDP_REFUSED << 8 :
		process.status;
}

void ddp_ends_gone(struct ddp_agent *agent, uint32_t task)
{
	agent->tasks[task].gone_ns = (uint64_t)ddp_clock_ns();
}

void ddp_ends_read(struct ddp_agent *agent, uint32_t task)
{
	struct ddp_watched *watched = &agent->tasks[task];
	int status = 0;

	ddp_tee_end(agent->tee, task);
	/* Without a supervisor, slurmstepd's delay shows who else failed. */
	if (agent->talk.state != DDP_TALK_OFF && !watched->ended)
		status = read_status(watched, &agent->node->slots[task]);
	if (status != 0)
		ddp_ends_told(agent, task, status);
}

void ddp_ends_told(struct ddp_agent *agent, uint32_t task, int status)
{
	struct ddp_watched *watched = &agent->tasks[task];

	if (watched->ended)
		return;
	ddp_tee_end(agent->tee, task);
	keep_first(agent, task, status);
	if (agent->talk.state != DDP_TALK_OFF)
		report(agent, task, status);
	ddp_errors_remove(&agent->node->slots[task]);
	close(watched->pidfd);
	watched->pidfd = -1;
	watched->ended = true;
	agent->left--;
}

void ddp_ends_orphan(struct ddp_agent *agent)
{
	uint32_t i;

	for (i = 0; i < agent->count; i++)
		ddp_ends_told(agent, i, SIGKILL);
}

void ddp_ends_send(struct ddp_agent *agent)
{
	uint32_t i;

	for (i = 0; i < agent->count; i++) {
		if (agent->tasks[i].end)
			ddp_talk_send(agent, agent->tasks[i].end);
		free(agent->tasks[i].end);
		agent->tasks[i].end = NULL;
	}
}
