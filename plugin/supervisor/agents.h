/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections to the agents. Who connects must prove within some seconds
 * that it knows the step's secret; what it then says goes into the step.
 */
#ifndef DDP_SUPERVISOR_AGENTS_H
#define DDP_SUPERVISOR_AGENTS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "supervisor/relay.h"
#include "verdict/facts.h"
#include "wire/proof.h"
#include "wire/wire.h"

struct ddp_peer {
	struct ddp_link *link;		/* NULL: it is gone */
	unsigned char nonce[DDP_WIRE_NONCE];
	int node;			/* of the step; -1: not proven yet */
	bool done;			/* it has said that all is over */
	int64_t since_ns;		/* it connected */
	int64_t heard_ns;		/* its last message */
	size_t polled;			/* its place in the list; 0: none */
};

struct ddp_agents {
	int listener;
	const struct ddp_secret *secret;
	struct ddp_facts *facts;
	struct ddp_relay *relay;	/* for what the user must know */
	bool ends;			/* KILL was sent: late ones get it too */
	bool full;			/* a connection could not be accepted */
	bool told_full;			/* and the user knows */
	int64_t pinged_ns;
	size_t count;
	struct ddp_peer *all;
};

/* Close all, but for the listener. */
void ddp_agents_clear(struct ddp_agents *agents);

/* The descriptors to poll: the listener's first; and what was found there. */
size_t ddp_agents_fill(struct ddp_agents *agents, struct pollfd *fds);
void ddp_agents_read(struct ddp_agents *agents, const struct pollfd *fds);

/*
 * Sends a PING to each where one is due, also to those that have answered none
 * since the first failure, and cuts off who has not proven itself.
 */
void ddp_agents_tick(struct ddp_agents *agents, int64_t now_ns);

/* Send KILL, EXPLAIN, ERRORS, or SIGNAL with a signal, to all. */
void ddp_agents_tell(struct ddp_agents *agents, enum ddp_wire_kind kind,
		     int signal);

#endif
