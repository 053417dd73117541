/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tee does with one stream of a task. Its state lies in memory that
 * the agent shares, so that another tee can go on where one was killed.
 */
#ifndef DDP_AGENT_COPY_H
#define DDP_AGENT_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/note.h"
#include "watch/lines.h"
#include "watch/tail.h"

enum {
	DDP_COPY_IN = 65536,	/* what a pipe holds */
	DDP_COPY_OUT = 16 * DDP_LINES_MAX
};

/* Zeros are the beginning. */
struct ddp_copy_state {
	struct ddp_tail tail;
	atomic_uint ahead;	/* bytes in the tail that Slurm lacks */
	atomic_bool busy;	/* some are read that are not in the tail */
	bool log_ended;		/* it could not be written any more */
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
	bool ended;		/* nobody can write any more, and all is
				 * copied */
};

enum { DDP_COPY_FROM, DDP_COPY_TO, DDP_COPY_LOG };

/* Make a stream ready; peek is a pipe of the process, for all streams. */
void ddp_copy_begin(struct ddp_copy *copy);

/* Copy some of what is there; never waits. */
void ddp_copy_some(struct ddp_copy *copy, const int peek[2]);

/* Let Slurm's pipe hold all that the stream can still have. */
void ddp_copy_widen(const struct ddp_copy *copy);

/* Write the line that is not whole. */
void ddp_copy_flush(struct ddp_copy *copy);

#endif
