/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tee does with one stream of a task. Its state lies in memory that
 * the agent shares, so that another tee can go on where one was killed.
 */
#ifndef DDP_AGENT_SPLICE_H
#define DDP_AGENT_SPLICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/node.h"
#include "proc/output.h"

enum {
	/* A pipe holds half of it, and that half is kept free for what an ended
	 * task has left. */
	DDP_COPY_IN = 2 * 65536,
	DDP_COPY_OUT = 16 * DDP_LINES_MAX
};

/* Zeros are the beginning. */
struct ddp_copy_state {
	struct ddp_tail tail;
	atomic_uint ahead;	/* bytes in the tail that Slurm lacks */
	atomic_bool drained;	/* the tail has what the ended task has left */
	int log_error;		/* why the log ends; 0: it does not */
	bool log_told;		/* and the user knows */
	uint32_t in_at, in_length;
	uint32_t out_at, out_length;
	struct ddp_lines lines;
	char in[DDP_COPY_IN], out[DDP_COPY_OUT];	/* for whole lines */
};

struct ddp_copy {
	struct ddp_note note;
	int fds[DDP_NOTE_FDS];
	struct ddp_copy_state *state;
	bool blocked;		/* Slurm reads no more for now */
	bool gone;		/* Slurm will never read */
	bool last;		/* no task of the node runs any more */
	size_t left;		/* bytes that an ended task may have left; 0: it
				 * runs, or they are read */
	bool ended;		/* all is read */
};

enum { DDP_COPY_FROM, DDP_COPY_TO, DDP_COPY_LOG };

/* Make a stream ready; peek is a pipe of the process, for all streams. */
void ddp_copy_begin(struct ddp_copy *copy);

/*
 * Copy some of what is there, or all that is left where the task has ended;
 * never waits.
 */
void ddp_copy_some(struct ddp_copy *copy, const int peek[2]);

/*
 * The task has ended: what it has left is read though Slurm may not take it for
 * now, so that the log and the tail have all of it. last: all tasks of the node
 * have ended, and nobody else's bytes are waited for.
 */
void ddp_copy_end(struct ddp_copy *copy, bool last);

#endif
