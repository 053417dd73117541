/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/wire is what the supervisor, which is the first process of srun, and the
 * agents, one beside the tasks of each node, say to each other. wire.h has the
 * messages and the connection, proof.h how each knows the other. Messages go as
 * frames: a length of 32 bits, a kind of 8, and the fields of that kind in a
 * fixed order, numbers in network byte order, texts with their NUL.
 *
 * The supervisor sends CHALLENGE when an agent connects. HELLO answers it and
 * has a challenge of its own, which WELCOME answers. Then the agent sends a
 * RANK for each task of its node, and everything else as it happens.
 */
#ifndef DDP_WIRE_WIRE_H
#define DDP_WIRE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "util/failure.h"

enum {
	DDP_WIRE_NONCE = 32,		/* bytes of a nonce, and of a proof */
	DDP_WIRE_NODE_SIZE = 256,
	DDP_WIRE_GPUS_SIZE = 256,
	DDP_WIRE_TAIL_SIZE = 4096,
	DDP_WIRE_FRAME_MAX = 8192	/* holds each frame, its length too */
};

/* The cause where the kernel has had a process killed as memory was short. */
#define DDP_WIRE_NO_MEMORY "out of memory"

/* The kernel has killed a process of the rank's, and not the rank. */
#define DDP_WIRE_NO_MEMORY_OF "a process ran " DDP_WIRE_NO_MEMORY

/* The same where only the machine is known to have killed one: any user's. */
#define DDP_WIRE_GUESS "perhaps " DDP_WIRE_NO_MEMORY

/*
 * Frames that change need another number: the plugin of a node may be older
 * than that of srun's host, or newer. test_wire.c has this version's bytes.
 */
#define DDP_WIRE_VERSION "1"

#define DDP_WIRE_NO_RANK UINT32_MAX	/* whose process it is, is unknown */

enum ddp_wire_kind {
	DDP_WIRE_CHALLENGE = 1,	/* supervisor: nonce */
	DDP_WIRE_HELLO,		/* agent: proof, nonce, node, job_id, step_id,
				 * world_size, count */
	DDP_WIRE_WELCOME,	/* supervisor: proof */
	DDP_WIRE_RANK,		/* agent: rank, pid, gpus, message (what the
				 * task warned of when it began) */
	DDP_WIRE_END,		/* agent: a task has ended: rank, status, at_ns,
				 * message, cause, tail */
	DDP_WIRE_DONE,		/* agent: all its tasks have ended, and it goes */
	DDP_WIRE_ORPHANED,	/* agent: its slurmstepd is gone; at_ns */
	DDP_WIRE_STAYS,		/* agent: a process cannot be killed: rank, pid,
				 * message (state and wait channel) */
	DDP_WIRE_PING,		/* supervisor, each second, but only if the one
				 * before is answered: at_ns */
	DDP_WIRE_PONG,		/* agent: ping_ns, at_ns */
	DDP_WIRE_SIGNAL,	/* supervisor: send status, a signal, to the
				 * tasks' own processes, and to no other */
	DDP_WIRE_KILL,		/* supervisor: SIGKILL to all that is left of
				 * the step on the node but the agent */
	DDP_WIRE_PULSE,		/* agent, each second with --ddp-watchdog:
				 * idle_ms of the rank of its node that made
				 * progress last */
	DDP_WIRE_EXPLAIN,	/* supervisor: a DETAIL of each rank, please */
	DDP_WIRE_DETAIL,	/* agent: what a rank does: rank, status (its
				 * state, a letter), idle_ms, beats, depth,
				 * behind, message (what it waits in), tail
				 * (its stack) */
	DDP_WIRE_ERRORS,	/* supervisor: an ERROR of each rank that runs
				 * and has left one, please */
	DDP_WIRE_ERROR,		/* agent: rank, at_ns, message */
	DDP_WIRE_WARNING,	/* agent: message, which the supervisor prints */
	DDP_WIRE_KINDS
};

/*
 * A message: its kind, and of the rest what the kind has. Times are those of
 * CLOCK_MONOTONIC of the machine that writes them.
 */
struct ddp_wire {
	enum ddp_wire_kind kind;
	unsigned char nonce[DDP_WIRE_NONCE], proof[DDP_WIRE_NONCE];
	char node[DDP_WIRE_NODE_SIZE];	/* the name that Slurm has for it */
	uint32_t job_id, step_id;
	uint32_t world_size;		/* ranks of the step */
	uint32_t count;			/* and those of this agent */
	uint32_t rank, pid;		/* STAYS: rank may be DDP_WIRE_NO_RANK */
	uint32_t status;		/* as of wait(2); or a signal */
	uint64_t at_ns, ping_ns;
	uint32_t idle_ms;		/* without progress */
	uint64_t beats;			/* heartbeats */
	uint32_t depth;			/* bytes of its stack; 0: not known */
	uint32_t behind;		/* in NCCL's operations: see ras.h */
	char gpus[DDP_WIRE_GPUS_SIZE];	/* as "0,1"; "": none */
	char message[DDP_FAILURE_SIZE];	/* one line; "": none */
	char cause[DDP_FAILURE_SIZE];	/* in words: NO_MEMORY, GUESS, another;
					 * "": none is known */
	char tail[DDP_WIRE_TAIL_SIZE];	/* the last lines of its stderr */
};

/* Write a frame; returns its length, which is never 0. */
size_t ddp_wire_encode(const struct ddp_wire *wire,
		       unsigned char frame[DDP_WIRE_FRAME_MAX]);

/*
 * Read a frame from the beginning of size bytes; members that its kind does not
 * have become 0. Returns the bytes that it takes; 0 if more are needed; -1 if
 * this is no frame.
 */
int ddp_wire_decode(const unsigned char *bytes, size_t size,
		    struct ddp_wire *wire);

/*
 * A connection between supervisor and agent that never blocks: what cannot go
 * out yet is kept. The kernels ask each other every second whether the other is
 * there (keepalive, tcp(7)), and answer also where their processes are stopped
 * or suspended; so a link breaks only when the process at the other end has
 * ended, or when its machine has not answered for DDP_LINK_SILENCE_MS.
 *
 * Nobody may send without end to a process that is stopped: when it has no more
 * room, the kernel gives the link up after that time, too. So the supervisor
 * sends a PING only when the one before is answered.
 */
enum { DDP_LINK_SILENCE_MS = 7000 };

struct ddp_link;

/*
 * Take a connected TCP socket over, or one that connects; destroy closes it.
 * NULL: out of memory, and fd is closed. destroy accepts NULL.
 */
struct ddp_link *ddp_link_create(int fd);
void ddp_link_destroy(struct ddp_link *link);

int ddp_link_fd(const struct ddp_link *link);

/*
 * The events for poll(2) to wait for: POLLIN, and POLLOUT if something is kept.
 */
short ddp_link_events(const struct ddp_link *link);

/*
 * Send a message, or keep it and send it by a later flush. Returns 0; -1 with
 * errno if the link is broken, or ENOBUFS if a MiB is kept already.
 */
int ddp_link_send(struct ddp_link *link, const struct ddp_wire *wire);
int ddp_link_flush(struct ddp_link *link);

/*
 * The next message. Returns 1; 0 if none has come yet; -1 if the link is
 * broken: errno is 0 where the other side closed it, EPROTO where it sent no
 * message of ours.
 */
int ddp_link_receive(struct ddp_link *link, struct ddp_wire *wire);

#endif
