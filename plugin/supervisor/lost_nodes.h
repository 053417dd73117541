/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_LOST_NODES_H
#define DDP_SUPERVISOR_LOST_NODES_H

#include "util/text.h"
#include "verdict/step.h"

struct ddp_attempt;

/*
 * The connection to the node's agent has ended with this errno; 0: it was closed.
 * heard_ns: its last message. The node is lost where nothing answers for its
 * machine. Where the kernel there says that the connection is no more, the agent
 * alone has ended.
 */
void ddp_node_lose(struct ddp_step *step, struct ddp_step_node *node, int why,
		   int64_t heard_ns);

/* Nodes that have not begun their tasks; zeros are the beginning. */
struct ddp_absent {
	bool asked;			/* their slurmds are watched, or were */
	int out;			/* what slurmds.h prints; -1: no more */
	struct ddp_text told;		/* what came of it */
	uint32_t begun;			/* nodes that had when that was begun */
	int64_t next_ns;		/* when it is looked at again */
	bool told_lost, told_slow;	/* the user knows that a node is */
};

/*
 * What is due. Nodes that are lost before their tasks have begun are in
 * the step then.
 */
void ddp_absent_tick(struct ddp_attempt *attempt, int64_t now_ns);

/* How soon that is to be called again; -1: there is nothing to wait for. */
int ddp_absent_timeout_ms(const struct ddp_attempt *attempt, int64_t now_ns);

/* Forget all, and ask no more. */
void ddp_absent_clear(struct ddp_attempt *attempt);

#endif
