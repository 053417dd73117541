/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the agent: waits for what happens, and for times. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "node/pidfd.h"
#include "util/file.h"

enum {
	NOTES, LINK, TEE, TASKS,	/* in the list that is polled */

	CHILDREN_MS = 1000,
	KILL_MS = 100,		/* from one round to the next */
	STAYS_MS = 2000,	/* what is left then cannot be killed */
	SLOW_KILL_MS = 1000,	/* from one round to the next from then on */
	OVER_MS = 800		/* for a supervisor that all went well */
};

void ddp_agent_signal(const struct ddp_agent *agent, int number)
{
	uint32_t i;

	for (i = 0; i < agent->count; i++)
		if (!agent->tasks[i].ended)
			ddp_pidfd_kill(agent->tasks[i].pidfd,
				       agent->node->slots[i].pid, number);
}

void ddp_agent_kill(struct ddp_agent *agent)
{
	if (agent->kill_ms != DDP_CLOCK_NEVER)
		return;
	agent->kill_ms = ddp_clock_ms();
	agent->next_kill_ms = agent->kill_ms;
	atomic_store(&agent->siblings->agent_kills, true);
}

/* A process that SIGKILL does not end: it waits in the kernel. */
static void tell_stays(struct ddp_agent *agent, struct ddp_process *process)
{
	char *where = ddp_file_read_of(process->pid, "wchan");
	struct ddp_wire stays = {
		.kind = DDP_WIRE_STAYS,
		.rank = process->rank,
		.pid = (uint32_t)process->pid,
	};

	if (where && *where && strcmp(where, "0") != 0)
		snprintf(stays.message, sizeof(stays.message), "%c, in %.128s",
			 process->state, where);
	else
		snprintf(stays.message, sizeof(stays.message), "%c",
			 process->state);
	free(where);
	if (!process->told)
		ddp_talk_send(agent, &stays);
	process->told = true;
}

/* A round of killing. */
static void kill_all(struct ddp_agent *agent)
{
	size_t left = ddp_step_kill(agent), i;
	int64_t now = ddp_clock_ms();
	bool late = now - agent->kill_ms >= STAYS_MS;

	for (i = 0; late && i < left; i++)
		tell_stays(agent, &agent->step.found.data[i]);
	agent->next_kill_ms = now + (late ? SLOW_KILL_MS : KILL_MS);
	if (left == 0)
		agent->kill_ms = DDP_CLOCK_NEVER;
	if (agent->orphaned && agent->left > 0 && (left == 0 || late))
		ddp_ends_orphan(agent);
}

/* slurmstepd has ended, and tasks have not. */
static void orphan(struct ddp_agent *agent)
{
	const struct ddp_wire orphaned = {
		.kind = DDP_WIRE_ORPHANED,
		.at_ns = (uint64_t)ddp_clock_ns(),
	};

	agent->orphaned = true;
	ddp_talk_send(agent, &orphaned);
	if (agent->talk.state == DDP_TALK_OFF)
		ddp_ends_orphan(agent);
	else
		ddp_agent_kill(agent);
}

static void note_tee(struct ddp_agent *agent)
{
	atomic_store(&agent->siblings->tee, ddp_tee_pid(agent->tee));
}

/* Returns whether there was one. */
static bool read_note(struct ddp_agent *agent)
{
	int fds[DDP_NOTE_FDS];
	struct ddp_note note = { 0 };
	int rc = ddp_note_receive(DDP_AGENT_NOTES, &note, fds);

	/* slurmstepd closes its side after the last END. */
	if (agent->left > 0 && (rc == 0 || (rc < 0 && errno != EAGAIN)))
		orphan(agent);
	if (rc <= 0)
		return false;
	if (note.kind == DDP_NOTE_OUTPUT)
		ddp_tee_add(agent->tee, &note, fds);
	else if (note.kind == DDP_NOTE_END && note.task < agent->count)
		ddp_ends_told(agent, note.task, note.status);
	note_tee(agent);
	return true;
}

static void revive_tee(struct ddp_agent *agent)
{
	ddp_tee_revive(agent->tee);
	note_tee(agent);
}

/*
 * srun's --wait-for-children counts the agent as a child of the task that
 * started it: slurmstepd does not say that this task has ended well until the
 * agent has. So when the processes of all tasks have ended, and for a second
 * slurmstepd has known it, the agent must go first. It would have said if one had
 * failed. The tee goes with the last child that can write.
 */
static int64_t get_children_deadline(const struct ddp_agent *agent)
{
	uint64_t last = 0;
	uint32_t i;

	if (!agent->awaited || agent->left == 0 || agent->orphaned)
		return DDP_CLOCK_NEVER;
	for (i = 0; i < agent->count; i++) {
		if (agent->tasks[i].ended)
			continue;
		if (!agent->tasks[i].gone_ns)
			return DDP_CLOCK_NEVER;
		if (agent->tasks[i].gone_ns > last)
			last = agent->tasks[i].gone_ns;
	}
	return (int64_t)(last / 1000000) + CHILDREN_MS;
}

static void leave_children(struct ddp_agent *agent)
{
	uint32_t i;

	for (i = 0; i < agent->count; i++) {
		if (agent->tasks[i].ended)
			continue;
		/* It is still there until slurmstepd has read its status. */
		if (ddp_pidfd_kill(agent->tasks[i].pidfd,
				   agent->node->slots[i].pid, 0) == 0) {
			ddp_ends_gone(agent, i);
			return;
		}
	}
	agent->children = true;
	for (i = 0; i < agent->count; i++)
		ddp_ends_told(agent, i, 0);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * All is over, and the supervisor is not reached yet. It is given up late, by
 * talk.c, where a task has failed: nobody else says which.
 */
static int64_t get_dialing_deadline(const struct ddp_agent *agent)
{
	return agent->over_ms && !agent->failed &&
	       agent->talk.state == DDP_TALK_DIALING ?
		agent->over_ms + OVER_MS : DDP_CLOCK_NEVER;
}

static int64_t get_deadline(const struct ddp_agent *agent)
{
	int64_t at = earlier(ddp_talk_deadline(agent),
			     get_children_deadline(agent));

	at = earlier(at, ddp_progress_deadline(agent));
	at = earlier(at, ddp_unseen_deadline(agent));
	if (agent->kill_ms != DDP_CLOCK_NEVER)
		at = earlier(at, agent->next_kill_ms);
	return earlier(at, get_dialing_deadline(agent));
}

static void wait_for(struct ddp_agent *agent, struct pollfd *fds)
{
	uint32_t i;

	/* When all tasks have ended, so has slurmstepd's part. */
	fds[NOTES] = (struct pollfd){
		.fd = agent->orphaned || agent->left == 0 ? -1 :
			DDP_AGENT_NOTES,
		.events = POLLIN,
	};
	fds[LINK].events = ddp_talk_events(agent, &fds[LINK].fd);
	fds[TEE] = (struct pollfd){
		.fd = ddp_tee_fd(agent->tee),
		.events = POLLIN,
	};
	for (i = 0; i < agent->count; i++)
		fds[TASKS + i] = (struct pollfd){
			.fd = agent->tasks[i].gone_ns ? -1 :
				agent->tasks[i].pidfd,
			.events = POLLIN,
		};
	if (ddp_pidfd_poll(fds, TASKS, agent->count, get_deadline(agent)) < 0)
		memset(fds, 0, (TASKS + agent->count) * sizeof(*fds));
}

static void serve(struct ddp_agent *agent, const struct pollfd *fds)
{
	int64_t now = ddp_clock_ms();
	bool gone = false;
	uint32_t i;

	for (i = 0; i < agent->count; i++)
		if (fds[TASKS + i].fd >= 0 && fds[TASKS + i].revents) {
			ddp_ends_gone(agent, i);
			gone = true;
		}
	if (fds[TEE].revents)
		revive_tee(agent);
	/* Where a task prints to is known before how it ended. */
	if (fds[NOTES].revents || (gone && !agent->orphaned))
		while (read_note(agent))
			;
	for (i = 0; gone && i < agent->count; i++)
		if (fds[TASKS + i].fd >= 0 && fds[TASKS + i].revents)
			ddp_ends_read(agent, i);
	ddp_talk_serve(agent);
	ddp_progress_serve(agent);
	ddp_unseen_serve(agent);
	if (agent->kill_ms != DDP_CLOCK_NEVER && now >= agent->next_kill_ms)
		kill_all(agent);
	if (now >= get_children_deadline(agent))
		leave_children(agent);
	if (agent->failed && !agent->told &&
	    agent->talk.state != DDP_TALK_DIALING && ddp_talk_sent(agent))
		agent->told = send(DDP_AGENT_NOTES, "", 1, MSG_DONTWAIT |
				   MSG_NOSIGNAL) == 1;
}

/* Returns true if nothing is left to be copied or told: the agent may go. */
static bool is_over(struct ddp_agent *agent)
{
	const struct ddp_wire done = { .kind = DDP_WIRE_DONE };

	if (agent->left > 0 ||
	    (!agent->children && !ddp_tee_finish(agent->tee)))
		return false;
	if (!agent->over_ms)
		agent->over_ms = ddp_clock_ms();
	if (agent->talk.state == DDP_TALK_DIALING)
		return ddp_clock_ms() >= get_dialing_deadline(agent);
	if (!agent->done)
		ddp_talk_send(agent, &done);
	agent->done = true;
	return ddp_talk_sent(agent);
}

void ddp_agent_run(struct ddp_agent *agent)
{
	struct pollfd *fds = calloc(TASKS + agent->count, sizeof(*fds));

	agent->left = agent->count;
	agent->kill_ms = DDP_CLOCK_NEVER;
	agent->tee = ddp_tee_create(agent->count, DDP_AGENT_NOTES);
	if (!fds || !agent->tee)
		return;
	ddp_talk_begin(agent);
	ddp_talk_serve(agent);
	ddp_step_begin(agent);
	/* Tasks may have ended before this began: in the order of the notes. */
	while (read_note(agent))
		;
	while (!is_over(agent)) {
		wait_for(agent, fds);
		serve(agent, fds);
	}
	if (agent->failed)
		ddp_folders_remove(agent);
	ddp_ends_tell(agent);
	ddp_talk_end(agent);
}
