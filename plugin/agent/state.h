/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the agent share; see agent.h for what it is. */
#ifndef DDP_AGENT_STATE_H
#define DDP_AGENT_STATE_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/progress.h"
#include "agent/tee.h"
#include "node/node.h"
#include "proc/kernel.h"
#include "util/clock.h"
#include "util/failure.h"
#include "wire/proof.h"
#include "wire/wire.h"

/* The agent's own files; all others have higher numbers. */
enum {
	DDP_AGENT_NOTES = 0,	/* slurmstepd's socket */
	DDP_AGENT_NULL = 1,	/* /dev/null */
	DDP_AGENT_SPEAK = 2	/* standard error of the task that started it;
				 * /dev/null when a supervisor speaks */
};

/* An error, and when it was written. */
struct ddp_error_file {
	uint32_t rank;
	struct timespec at;
	char message[DDP_FAILURE_SIZE];
};

/* files.c */
struct ddp_agent;

/*
 * Make and name the files of each slot; of a launcher's error file its folder.
 * Returns 0; -1 with errno: from one slot on they have none, and "" in its place.
 */
int ddp_errors_create(const struct ddp_agent *agent, struct ddp_slot *slots,
		      bool launcher);
void ddp_errors_remove(const struct ddp_slot *slot);

/* Whether the task has left an error, and which. */
bool ddp_errors_read(const struct ddp_slot *slot, struct ddp_error_file *error);

/*
 * A task has failed, the first one. Find the error that was written first: not
 * always by the task that ended first, nor is its end always seen first.
 * Returns false if the task has left none itself.
 */
bool ddp_errors_find_first(const struct ddp_node *node, uint32_t count,
			   uint32_t task, struct ddp_error_file *first);

/* Print it, with the time, by which the first of several nodes is known. */
void ddp_errors_tell(const struct ddp_error_file *error, const char *host);

/* Removes what killed ranks of ddp-train have left; called at the end. */
void ddp_folders_remove(const struct ddp_agent *agent);

/* A process of the step. */
struct ddp_process {
	pid_t pid, parent, session;
	uint32_t rank;		/* DDP_WIRE_NO_RANK */
	char state;
	uint64_t cpu;		/* clock ticks */
	bool ours;		/* while they are looked for */
	bool apart;		/* it descends from no task */
	bool told;		/* that it stays */
};

struct ddp_processes {
	struct ddp_process *data;
	size_t count, size;
};

/* step.c: which processes are the step's. */
struct ddp_container {
	const char *controller;	/* of its cgroups; NULL: it has none */
	char path[DDP_CGROUP_SIZE], folder[DDP_CGROUP_SIZE];
	pid_t session;		/* of slurmstepd and its tasks */
	pid_t slurmstepd;	/* not to be killed */
	struct ddp_processes found;
};

void ddp_step_begin(struct ddp_agent *agent);

/* Find those that run, the agent and the tee too; data is to be freed. */
void ddp_step_find(struct ddp_agent *agent, struct ddp_processes *list);

/*
 * Send SIGKILL to all of them but slurmstepd, the agent and the tee, and find
 * those that have not ended yet: step->found. Returns how many.
 */
size_t ddp_step_kill(struct ddp_agent *agent);

/* cause.c: why tasks end. */
struct ddp_cause {
	int kmsg;		/* /dev/kmsg; -1: it cannot be read */
	unsigned long machine;	/* processes that the machine has killed for
				 * memory, as far as that is old news */
	unsigned long step;	/* the same for the step, where tasks have no
				 * cgroups of their own */
	bool apart;		/* they have */
	bool asked;		/* the step has failed: nothing is old news */
};

/* Before any task's program starts; and what may be a little later. */
void ddp_cause_open(struct ddp_agent *agent);
void ddp_cause_begin(struct ddp_agent *agent);

/* Forget the kills that are known by now, unless a rank has failed. */
void ddp_cause_forget(struct ddp_agent *agent);

/* Why this task failed, in words; "" if nothing is known. */
void ddp_cause_find(struct ddp_agent *agent, uint32_t task, int status,
		    char cause[DDP_FAILURE_SIZE]);

/* A task that is watched. */
struct ddp_watched {
	int pidfd;
	uint64_t gone_ns;	/* when its process was seen to end; 0 */
	bool ended;		/* slurmstepd has said so */
	struct ddp_wire *end;	/* for the supervisor, when it is reached */
	char memory[DDP_CGROUP_SIZE];	/* the cgroup's folder; "" */
	unsigned long killed;	/* there, for memory, at the beginning */
	struct ddp_kernel_record record;	/* the last about it */
};

/* talk.c: the link to the supervisor. */
enum ddp_talk_state {
	DDP_TALK_OFF,		/* there is none, or it was given up */
	DDP_TALK_DIALING,
	DDP_TALK_ON,		/* it is there, and is the right one */
	DDP_TALK_LOST		/* it was there */
};

struct ddp_talk {
	enum ddp_talk_state state;
	struct sockaddr_storage address;
	socklen_t address_size;
	struct ddp_secret secret;
	unsigned char nonce[DDP_WIRE_NONCE];
	bool greeted;		/* HELLO is sent */
	struct ddp_link *link;	/* NULL: between two attempts */
	int64_t until_ms, again_ms;
	pid_t helper;		/* it asks whether Slurm ends the job; 0: none */
	char host[64], port[8];
	const char *why;	/* it cannot be reached */
};

/* launchers.c: launchers that srun did not see. */
struct ddp_unseen {
	uint32_t left;		/* how often to look; 0: no more */
	int64_t wait_ms, next_ms;
};

/* Read in the task whether to look for them; and look when it is time. */
void ddp_unseen_begin(struct ddp_agent *agent,
		      const struct ddp_agent_step *step);
int64_t ddp_unseen_deadline(const struct ddp_agent *agent);
void ddp_unseen_serve(struct ddp_agent *agent);

/* Find the supervisor in the task's environment. */
void ddp_talk_find(struct ddp_talk *talk, const struct ddp_agent_step *step);

void ddp_talk_begin(struct ddp_agent *agent);

/* What it waits for; serve when that has come, or the time. */
short ddp_talk_events(const struct ddp_agent *agent, int *fd);
int64_t ddp_talk_deadline(const struct ddp_agent *agent);
void ddp_talk_serve(struct ddp_agent *agent);

/* Send it if the supervisor is there. */
void ddp_talk_send(struct ddp_agent *agent, const struct ddp_wire *wire);

/* Whether nothing that was sent is still on its way out of this process. */
bool ddp_talk_sent(const struct ddp_agent *agent);
void ddp_talk_end(struct ddp_agent *agent);

/* ends.c */

/*
 * A task's process has ended. How, the kernel may say, to ddp_ends_read, and
 * slurmstepd does.
 */
void ddp_ends_gone(struct ddp_agent *agent, uint32_t task);
void ddp_ends_read(struct ddp_agent *agent, uint32_t task);
void ddp_ends_told(struct ddp_agent *agent, uint32_t task, int status);

/* slurmstepd is no more: all that have not ended have been killed. */
void ddp_ends_orphan(struct ddp_agent *agent);

/* Tell the errors that tasks have left which have not ended. */
void ddp_ends_errors(struct ddp_agent *agent);

/* The supervisor is reached, or given up. */
void ddp_ends_send(struct ddp_agent *agent);
void ddp_ends_tell(struct ddp_agent *agent);

/* agent.c */
struct ddp_agent {
	struct ddp_siblings *siblings;	/* in whose memory node is */
	const struct ddp_node *node;
	uint32_t count, left;	/* tasks; those that have not ended */
	uint32_t world_size;
	const char *host;
	const char *path;	/* PATH of the tasks; NULL */
	struct ddp_watched *tasks;
	bool failed;		/* a task has */
	bool told;		/* and slurmstepd knows that it was told of */
	bool has_first;		/* and this is to be told */
	struct ddp_error_file first;
	bool orphaned;
	bool awaited;		/* srun waits for tasks' children */
	bool children;		/* none else is left, and the tee goes with them */
	bool done;		/* DONE is sent */
	int64_t over_ms;	/* since when no task is left, nor output */
	int64_t kill_ms;	/* since when all are to be killed; DDP_CLOCK_NEVER */
	int64_t next_kill_ms;
	struct ddp_container step;
	struct ddp_cause cause;
	struct ddp_talk talk;
	struct ddp_unseen unseen;
	struct ddp_tee *tee;
	struct ddp_progress progress;
};

/* Run in the agent's process, until all is done. */
void ddp_agent_run(struct ddp_agent *agent);

void ddp_agent_signal(const struct ddp_agent *agent, int number);
void ddp_agent_kill(struct ddp_agent *agent);

#endif
