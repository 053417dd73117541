/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: a process of the user's beside the tasks of a node, until the last
 * of them has ended. It is made before their programs start, so that it misses
 * none, and sleeps until the program of the task that made it starts. It tells
 * the step's supervisor (lib/wire) how each task ended, and kills what is left
 * of the step on this node when the supervisor says so, or is lost. Where there
 * is no supervisor it only prints one line, if the first task that fails has
 * left an error file, as PyTorch's @record writes it.
 *
 * start.c starts it, agent.c is its loop, talk.c the link to the supervisor,
 * node/node.h what slurmstepd and the tasks tell it, ends.c the ends of tasks,
 * cause.c why they failed, files.c their files, progress.c and stacks.c whether they
 * hang, step.c all processes of the step. tee.c and tee_process.c are the
 * process that copies the tasks' output, and splice.c what it does with one
 * stream. This header is what plugin/stepd calls; state.h
 * is what the agent's own files share.
 */
#ifndef DDP_AGENT_AGENT_H
#define DDP_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "util/error.h"

/* The task that starts the agent tells it this, and keeps the texts. */
struct ddp_agent_step {
	uint32_t job_id, step_id, world_size;
	uint32_t rank;			/* of that task */
	bool launcher;			/* the command starts the ranks */
	bool awaited;			/* srun waits for tasks' children */
	int notes;			/* the socket of node/node.h */
	uint16_t ras_port;		/* which NCCL was given for RAS; 0 */
	const char *host;		/* this node's name */
	const char *path;		/* the user's PATH; NULL: not set */
	const char *ras_address;	/* the user's NCCL_RAS_ADDR; NULL */
	const char *supervisor;		/* what DDP_TELL_SUPERVISOR says; NULL */
	const char *srun_host;		/* where that is; NULL */
};

/*
 * Start the agent of these tasks, whose slots say their ranks and pids. One task
 * calls this, once, and the agent has its memory afterwards. Sets
 * siblings->agent, and names each slot's files. Returns 0, or -1 if no agent can
 * run: siblings->agent is then not positive.
 */
int ddp_agent_start(const struct ddp_agent_step *step,
		    struct ddp_siblings *siblings, struct ddp_error *error);

/*
 * Remove what its tasks have left in folders for temporary files, as the agent
 * itself would; for where that was killed. To be called as the user.
 */
void ddp_agent_tidy(const struct ddp_siblings *siblings);

#endif
