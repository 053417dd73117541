/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a step that is watched: its nodes, its ranks, and how they
 * ended. Times are nanoseconds of the supervisor's CLOCK_MONOTONIC.
 */
#ifndef DDP_VERDICT_STEP_H
#define DDP_VERDICT_STEP_H

#include <stdbool.h>

#include "wire/wire.h"

/* A node; in a heterogeneous step, the part of a component on a node. */
struct ddp_step_node {
	char name[DDP_WIRE_NODE_SIZE];
	uint32_t count, ended;		/* its ranks; those that have */
	int64_t offset_ns;		/* add it to the node's own times */
	int64_t trip_ns;		/* round trip by which it is known */
	int64_t answered_ns;		/* when the last PING was sent that its
					 * agent has answered; 0: none */
	bool open;			/* its agent is connected */
	int64_t asked_ns;		/* a PING is not answered since; 0 */
	bool unreachable;		/* its machine acknowledges nothing now */
	bool lost, orphaned;		/* it does not answer; no slurmstepd */
	bool unlaunched;		/* lost before its tasks had begun */
	bool awaited;			/* and srun still waits for it */
	bool left;			/* its agent has: no more is told */
	int64_t left_ns;		/* since then */
	bool told;			/* and the user knows */
	bool silent;			/* it does not answer, or did not then */
	int64_t lost_ns;		/* when it was lost or orphaned */
	int64_t orphaned_ns;		/* the same, by its own clock */
	uint32_t idle_ms;		/* since a rank of it made progress, as
					 * far as that is told */
};

struct ddp_step_rank {
	bool known, ended;
	bool answered;			/* the end is no failure: see noticed */
	uint32_t node;			/* its index */
	uint32_t pid, status;
	int64_t at_ns;			/* its end, by the clock of its node */
	int64_t seen_ns;		/* when that was heard of */
	char *gpus, *message, *cause, *tail;	/* as in a ddp_wire; NULL: "" */
	char *warning;			/* its task's, why ranks may not meet */
	char *guess;			/* a cause that is only told; or NULL */
	char *error;			/* it ran, and had left this message */
	int64_t error_ns;		/* at that time, by its node's clock */
};

/* The time of --ddp-grace. */
struct ddp_step_grace {
	uint32_t seconds;
	int64_t began_ns, over_ns;	/* ranks got SIGTERM; and SIGKILL; 0 */
};

struct ddp_step {
	uint32_t job_id, step_id;
	uint32_t world_size;		/* 0: no agent has connected yet */
	uint32_t known, ended;		/* ranks */
	bool failed;			/* one of them has, or a node is lost */
	bool noticed;			/* they got --ddp-signal: from now on
					 * one exit code, which is not 1, is
					 * their answer */
	bool saves;			/* --ddp-signal was given: 75, by which
					 * ranks say that they have saved, is
					 * the answer to any signal */
	const char *launcher;		/* such as "torchrun", which starts the
					 * ranks: those here are its tasks;
					 * NULL: none */
	int answer;			/* that code; 0: none yet */
	int64_t end_ns, last_end_ns;	/* when the first end was heard of, and
					 * the last; 0: none */
	int64_t start_ns;		/* of its first agent */
	struct ddp_step_grace grace;
	uint32_t node_count;
	struct ddp_step_node *nodes;
	uint32_t *slots;		/* by name: the index of a node, and 1 */
	uint32_t slot_count;		/* a power of two */
	struct ddp_step_rank *ranks;	/* world_size of them */
	struct ddp_hang *hang;		/* see hang.h; NULL: nobody asked */
};

void ddp_step_clear(struct ddp_step *step);

/*
 * Add the node of a HELLO, if it was not said to be unlaunched. Returns its
 * index; -1 if memory is short, or if this is no part of the step that the first
 * HELLO has named.
 */
int ddp_step_add_node(struct ddp_step *step, const struct ddp_wire *hello,
		      int64_t now_ns);

/* The index of a node that was added; -1: none has this name. */
int ddp_step_find_node(const struct ddp_step *step, const char *name);

/* A RANK or an END of a node; what does not fit the step is ignored. */
void ddp_step_add_rank(struct ddp_step *step, uint32_t node,
		       const struct ddp_wire *wire);
void ddp_step_add_end(struct ddp_step *step, uint32_t node,
		      const struct ddp_wire *wire, int64_t now_ns);

/* An ORPHANED of a node: that may be why its ranks end. */
void ddp_step_add_orphaned(struct ddp_step *step, uint32_t node,
			   const struct ddp_wire *wire, int64_t now_ns);

/* An ERROR of a node. */
void ddp_step_add_error(struct ddp_step *step, uint32_t node,
			const struct ddp_wire *wire);

/*
 * This rank has ended by an exit code, for this cause, and before all others
 * that are known to have failed. It is known, and its own end is not, or is
 * SIGKILL.
 */
void ddp_step_add_abort(struct ddp_step *step, uint32_t rank, int code,
			const char *cause, int64_t now_ns);

/* A PONG, from which the offset of the node's clock is known. */
void ddp_step_add_pong(struct ddp_step *step, uint32_t node,
		       const struct ddp_wire *wire, int64_t now_ns);

/*
 * Returns true if the rank did not fail up to this time: it has ended well, or its
 * agent has answered a PING that was sent later, and tells of no end. An agent tells
 * of an end before slurmstepd tells srun.
 */
bool ddp_step_denies(const struct ddp_step *step, uint32_t rank,
		     int64_t at_ns);

/* When a rank ended. */
int64_t ddp_step_end_ns(const struct ddp_step *step, uint32_t rank);

/* How many agents are connected. */
uint32_t ddp_step_count_open(const struct ddp_step *step);

/* A node whose agent does not answer, and has yet to tell of ends; NULL: none. */
const struct ddp_step_node *ddp_step_find_silent(const struct ddp_step *step);

/* Whether all ranks have ended, by what their agents have told to the end. */
bool ddp_step_is_over(const struct ddp_step *step);

/* Whether an agent tells of a rank now. */
bool ddp_step_is_watched(const struct ddp_step *step, uint32_t rank);

/* Whether an end is by SIGKILL. */
bool ddp_step_was_killed(uint32_t status);

/* The code of an end as a shell has it: the exit code, or 128 and the signal. */
int ddp_step_code(uint32_t status);

/* The highest of them: the code of the step, if srun does not tell it. */
int ddp_step_worst(const struct ddp_step *step);

#endif
