/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes to the agent, on a socketpair (AF_UNIX, SOCK_SEQPACKET). slurmstepd
 * tells the agent that a task has ended. Each task tells it, before its program
 * starts, where its output goes; the agent passes this on to the tee. END needs
 * no more than the first three members; those of a message that are not sent
 * are 0.
 */
#ifndef DDP_NODE_NOTE_H
#define DDP_NODE_NOTE_H

#include <stdint.h>

enum {
	DDP_NOTE_FDS = 3,
	DDP_NOTE_LABEL_SIZE = 288	/* "[RANK NODE] " */
};

enum ddp_note_kind {
	DDP_NOTE_END = 1,	/* slurmstepd: task, status; the agent, to the
				 * tee: task */
	DDP_NOTE_OUTPUT,	/* a task: task, stream, way, label, and
				 * descriptors */
	DDP_NOTE_FINISH		/* the agent, to the tee: no task runs */
};

/* The way that a stream's bytes take. */
enum ddp_note_way {
	DDP_NOTE_COPY,		/* its bytes go to Slurm as they are */
	DDP_NOTE_LINES,		/* whole lines do, with the label in front */
	DDP_NOTE_DROP,		/* nothing does */
	DDP_NOTE_FILE		/* it is a file; only its end matters */
};

/*
 * Descriptors of OUTPUT: where the tee reads, where Slurm reads and, if there
 * is one, the log; for DDP_NOTE_FILE the file, to be read.
 */
struct ddp_note {
	uint32_t kind, task;	/* task: its local rank */
	int32_t status;		/* as of wait(2) */
	uint32_t stream;	/* STDOUT_FILENO or STDERR_FILENO */
	uint32_t way;
	char label[DDP_NOTE_LABEL_SIZE];
};

/*
 * Send a message and count descriptors, which stay open here. Waits for room.
 * Returns 0, or -1 with errno.
 */
int ddp_note_send(int to, const struct ddp_note *note, const int *fds,
		  int count);

/*
 * Receive one, with the descriptors that came with it; -1 stands for those that
 * did not. Never waits. Returns 1; 0 at the end; -1 with errno.
 */
int ddp_note_receive(int from, struct ddp_note *note, int fds[DDP_NOTE_FDS]);

#endif
