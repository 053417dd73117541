/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent says: its proof, then what becomes of its ranks. */
#define _GNU_SOURCE
#include "supervisor/agents.h"
#include "supervisor/now.h"
#include "verdict/hang.h"

static void kill_late(struct ddp_agents *agents, struct ddp_peer *agent)
{
	const struct ddp_wire wire = { .kind = DDP_WIRE_KILL };

	if (agents->ends)
		ddp_agents_send(agents, agent, &wire);
}

/* Returns whether this is an agent of the step. */
static bool welcome(struct ddp_agents *agents, struct ddp_peer *agent,
		    const struct ddp_wire *hello)
{
	struct ddp_wire wire = { .kind = DDP_WIRE_WELCOME };

	if (!ddp_proof_check(agents->secret, "agent", hello->node,
			     agent->nonce, hello->proof) ||
	    ddp_proof_make(agents->secret, "supervisor", hello->node,
			   hello->nonce, wire.proof) < 0)
		return false;
	agent->heard_ns = ddp_clock_ns();
	agent->node = ddp_step_add_node(agents->step, hello, agent->heard_ns);
	if (agent->node < 0)
		return false;
	ddp_agents_send(agents, agent, &wire);
	ddp_agents_ping(agents, agent);
	kill_late(agents, agent);
	return true;
}

static void say_stays(struct ddp_agents *agents, const struct ddp_peer *agent,
		      const struct ddp_wire *wire)
{
	struct ddp_text text = { 0 };

	ddp_text_add(&text, "slurm-ddp: ");
	if (wire->rank != DDP_WIRE_NO_RANK)
		ddp_text_add(&text, "rank %u", wire->rank);
	else
		ddp_text_add(&text, "a process");
	ddp_text_add_quoted(&text, " on %s (pid %u) stays: %s",
			    agents->step->nodes[agent->node].name, wire->pid,
			    wire->message);
	ddp_text_add(&text, "\n");
	ddp_relay_say(agents->relay, &text);
}

static void say_warning(struct ddp_agents *agents, const struct ddp_wire *wire)
{
	struct ddp_text text = { 0 };

	ddp_text_add_quoted(&text, "slurm-ddp: %s", wire->message);
	ddp_text_add(&text, "\n");
	ddp_relay_say(agents->relay, &text);
}

/* It may be why a rank ended, so it counts from when it happened. */
static void orphan(struct ddp_step *step, struct ddp_step_node *node,
		   const struct ddp_wire *wire)
{
	int64_t at_ns = (int64_t)wire->at_ns + node->offset_ns;

	step->failed = true;
	node->orphaned = true;
	node->lost_ns = ddp_clock_ns();
	if (node->trip_ns != INT64_MAX && at_ns < node->lost_ns)
		node->lost_ns = at_ns;
}

bool ddp_agents_hear(struct ddp_agents *agents, struct ddp_peer *agent,
		     const struct ddp_wire *wire)
{
	struct ddp_step *step = agents->step;
	uint32_t node = (uint32_t)agent->node;

	if (agent->node < 0)
		return wire->kind == DDP_WIRE_HELLO &&
		       welcome(agents, agent, wire);
	agent->heard_ns = ddp_clock_ns();
	switch (wire->kind) {
	case DDP_WIRE_RANK:
		ddp_step_add_rank(step, node, wire);
		return true;
	case DDP_WIRE_END:
		ddp_step_add_end(step, node, wire, agent->heard_ns);
		return true;
	case DDP_WIRE_PONG:
		agent->asked_ns = 0;
		ddp_step_add_pong(step, node, wire, agent->heard_ns);
		return true;
	case DDP_WIRE_ORPHANED:
		orphan(step, &step->nodes[node], wire);
		return true;
	case DDP_WIRE_STAYS:
		say_stays(agents, agent, wire);
		return true;
	case DDP_WIRE_PULSE:
		ddp_hang_add_pulse(step, node, wire);
		return true;
	case DDP_WIRE_ERROR:
		ddp_step_add_error(step, node, wire);
		return true;
	case DDP_WIRE_WARNING:
		say_warning(agents, wire);
		return true;
	case DDP_WIRE_DETAIL:
		ddp_hang_add_detail(step, node, wire);
		return true;
	case DDP_WIRE_DONE:
		agent->done = true;
		return true;
	default:
		return false;
	}
}
