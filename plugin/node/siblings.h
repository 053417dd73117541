/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tasks of one node wait for each other before their programs run: in
 * memory that root.c maps before slurmstepd forks them. Of that, slurmstepd
 * itself reads agent, agent_done and agent_kills alone.
 *
 * A gate is closed until one task opens it; each of the others waits there at
 * most once, and not for ever.
 */
#ifndef DDP_NODE_SIBLINGS_H
#define DDP_NODE_SIBLINGS_H

#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_SIBLINGS_WAIT_S = 10 };

enum ddp_gate {
	DDP_GATE_MACHINE,	/* the node's hardware is known */
	DDP_GATE_SAID,		/* every task has said what it was given */
	DDP_GATE_PLACED,	/* every task's placement is chosen */
	DDP_GATE_COUNT
};

struct ddp_siblings {
	uint32_t count;			/* of tasks */
	atomic_uint arrived, said;
	atomic_bool failed;
	atomic_int agent;		/* its pid; not positive: there is
					 * none */
	atomic_bool agent_done;		/* it has ended by itself */
	atomic_bool agent_kills;	/* it has begun to end all tasks */
	sem_t gates[DDP_GATE_COUNT];
	alignas(max_align_t) unsigned char memory[];	/* zeros to share, at
							 * one address in all */
};

/* Each task calls both once; true for the last that has something to say. */
void ddp_siblings_arrive(struct ddp_siblings *siblings);
bool ddp_siblings_say(struct ddp_siblings *siblings);

void ddp_siblings_open(struct ddp_siblings *siblings, enum ddp_gate gate);

/*
 * Returns 0 if the gate is open, 1 if a sibling has failed, -1 after
 * DDP_SIBLINGS_WAIT_S seconds, not counting those in which this task was
 * stopped. what is not done then completes the error.
 */
int ddp_siblings_wait(struct ddp_siblings *siblings, enum ddp_gate gate,
		      const char *what, struct ddp_error *error);

/*
 * Tell the others that this task fails; they notice within a fraction of a
 * second. Returns whether it is the first.
 */
bool ddp_siblings_fail(struct ddp_siblings *siblings);
bool ddp_siblings_failed(struct ddp_siblings *siblings);

#endif
