/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections to the agents: who proves itself, and what agents say. */
#define _GNU_SOURCE
#include "supervisor/agents.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/lost_nodes.h"
#include "util/clock.h"
#include "verdict/hang.h"
#include "verdict/times.h"

enum {
	STRANGERS_MAX = 1024,	/* who have not proven themselves yet */
	ACCEPT_MAX = 64		/* at once */
};

static struct ddp_step_node *get_node(const struct ddp_agents *agents,
				      const struct ddp_peer *agent)
{
	return &agents->facts->step.nodes[agent->node];
}

void ddp_agents_clear(struct ddp_agents *agents)
{
	size_t i;

	for (i = 0; i < agents->count; i++)
		ddp_link_destroy(agents->all[i].link);
	free(agents->all);
}

static void close_link(struct ddp_peer *agent)
{
	ddp_link_destroy(agent->link);
	agent->link = NULL;
}

static void lose(struct ddp_agents *agents, struct ddp_peer *agent, int why)
{
	struct ddp_step_node *node;

	close_link(agent);
	if (agent->node < 0)
		return;
	node = get_node(agents, agent);
	node->open = node->unreachable = false;
	if (agent->done)
		node->silent = false;
	else
		ddp_node_lose(&agents->facts->step, node, why, agent->heard_ns);
}

static void send_wire(struct ddp_agents *agents, struct ddp_peer *agent,
		      const struct ddp_wire *wire)
{
	if (agent->link && ddp_link_send(agent->link, wire) < 0)
		lose(agents, agent, errno);
}

/* Unless one is on its way. */
static void ping(struct ddp_agents *agents, struct ddp_peer *agent)
{
	const struct ddp_wire wire = {
		.kind = DDP_WIRE_PING, .at_ns = (uint64_t)ddp_clock_ns(),
	};
	struct ddp_step_node *node = get_node(agents, agent);

	if (node->asked_ns)
		return;
	node->asked_ns = ddp_clock_ns();
	send_wire(agents, agent, &wire);
}

/* ---- what agents say */

static void kill_late(struct ddp_agents *agents, struct ddp_peer *agent)
{
	const struct ddp_wire wire = { .kind = DDP_WIRE_KILL };

	if (agents->ends)
		send_wire(agents, agent, &wire);
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
	agent->node = ddp_step_add_node(&agents->facts->step, hello,
					agent->heard_ns);
	if (agent->node < 0)
		return false;
	get_node(agents, agent)->open = true;
	send_wire(agents, agent, &wire);
	ping(agents, agent);
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
			    get_node(agents, agent)->name, wire->pid,
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

/* Returns whether the message may come from an agent. */
static bool hear(struct ddp_agents *agents, struct ddp_peer *agent,
		 const struct ddp_wire *wire)
{
	struct ddp_step *step = &agents->facts->step;
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
		step->nodes[node].asked_ns = 0;
		ddp_step_add_pong(step, node, wire, agent->heard_ns);
		return true;
	case DDP_WIRE_ORPHANED:
		ddp_step_add_orphaned(step, node, wire, agent->heard_ns);
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

/* ---- connections */

/* Of those who have not proven themselves yet, who came first; or NULL. */
static struct ddp_peer *find_stranger(struct ddp_agents *agents, size_t *count)
{
	struct ddp_peer *oldest = NULL, *agent;
	size_t i;

	*count = 0;
	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		if (agent->node >= 0 || !agent->link)
			continue;
		++*count;
		if (!oldest || agent->since_ns < oldest->since_ns)
			oldest = agent;
	}
	return oldest;
}

/*
 * A place for one more agent: that of a stranger who is gone, or has had the
 * longest time to prove itself where there are too many. An agent that loses
 * its place tries again.
 */
static struct ddp_peer *add_agent(struct ddp_agents *agents)
{
	struct ddp_peer *all, *oldest;
	size_t i, strangers;

	for (i = 0; i < agents->count; i++)
		if (agents->all[i].node < 0 && !agents->all[i].link)
			return &agents->all[i];
	oldest = find_stranger(agents, &strangers);
	if (strangers >= STRANGERS_MAX) {
		close_link(oldest);
		return oldest;
	}
	all = realloc(agents->all, (i + 1) * sizeof(*all));
	if (!all)
		return NULL;
	agents->all = all;
	agents->count = i + 1;
	return &all[i];
}

static void begin(struct ddp_agents *agents, int fd)
{
	struct ddp_wire wire = { .kind = DDP_WIRE_CHALLENGE };
	struct ddp_peer *agent = add_agent(agents);

	if (!agent) {
		close(fd);
		return;
	}
	*agent = (struct ddp_peer){ .node = -1, .since_ns = ddp_clock_ns() };
	agent->link = ddp_link_create(fd);
	if (!agent->link)
		return;
	if (ddp_proof_random(agent->nonce) < 0) {
		close_link(agent);
		return;
	}
	memcpy(wire.nonce, agent->nonce, sizeof(wire.nonce));
	send_wire(agents, agent, &wire);
}

/* Where no more can be open: by a stranger less, else nodes go unwatched. */
static void make_room(struct ddp_agents *agents, int error)
{
	struct ddp_text text = { 0 };
	size_t strangers;
	struct ddp_peer *oldest = find_stranger(agents, &strangers);

	if (oldest) {
		close_link(oldest);
		return;
	}
	agents->full = true;
	if (agents->told_full)
		return;
	agents->told_full = true;
	ddp_text_add(&text, "slurm-ddp: only %u nodes are watched: %s; raise "
		     "ulimit -n\n",
		     ddp_step_count_open(&agents->facts->step),
		     strerror(error));
	ddp_relay_say(agents->relay, &text);
}

/* accept fails where no file can be open before it looks for a connection. */
static bool is_waiting(int listener)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* Not without end: whoever connects on and on must not hold up the rest. */
static void accept_some(struct ddp_agents *agents)
{
	int i, fd, error;

	for (i = 0; i < ACCEPT_MAX; i++) {
		fd = accept4(agents->listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		begin(agents, fd);
	}
	error = errno;
	if (i < ACCEPT_MAX && (error == EMFILE || error == ENFILE) &&
	    is_waiting(agents->listener))
		make_room(agents, error);
}

static void read_agent(struct ddp_agents *agents, struct ddp_peer *agent)
{
	struct ddp_wire wire;
	int rc;

	while (agent->link) {
		errno = 0;
		rc = ddp_link_receive(agent->link, &wire);
		if (rc == 0)
			break;
		if (rc < 0)
			lose(agents, agent, errno);
		else if (!hear(agents, agent, &wire))
			lose(agents, agent, EPROTO);
	}
}

/* Only those that are open: poll refuses more than RLIMIT_NOFILE. */
size_t ddp_agents_fill(struct ddp_agents *agents, struct pollfd *fds)
{
	struct ddp_peer *agent;
	size_t i, count = 1;

	fds[0] = (struct pollfd){
		.fd = agents->full ? -1 : agents->listener, .events = POLLIN,
	};
	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		agent->polled = agent->link ? count++ : 0;
		if (agent->link)
			fds[agent->polled] = (struct pollfd){
				.fd = ddp_link_fd(agent->link),
				.events = ddp_link_events(agent->link),
			};
	}
	return count;
}

void ddp_agents_read(struct ddp_agents *agents, const struct pollfd *fds)
{
	struct ddp_peer *agent;
	short came;
	size_t i;

	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		came = agent->polled ? fds[agent->polled].revents : 0;
		if (agent->link && (came & POLLOUT) &&
		    ddp_link_flush(agent->link) < 0)
			lose(agents, agent, errno);
		if (agent->link && (came & ~POLLOUT))
			read_agent(agents, agent);
	}
	if (fds[0].revents)
		accept_some(agents);
}

/*
 * Returns true if its machine does not answer at this time. The kernels ask each
 * other each second, and answer for an agent that is stopped or suspended.
 */
static bool is_unreachable(const struct ddp_peer *agent)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	return getsockopt(ddp_link_fd(agent->link), IPPROTO_TCP, TCP_INFO,
			  &info, &size) == 0 &&
	       info.tcpi_last_ack_recv > DDP_UNREACHABLE_MS;
}

void ddp_agents_tick(struct ddp_agents *agents, int64_t now_ns)
{
	int64_t failed_ns = agents->facts->failed_ns;
	bool decides = failed_ns && !agents->facts->decided_ns;
	bool due = now_ns - agents->pinged_ns >= ms(DDP_PING_MS);
	struct ddp_step_node *node;
	struct ddp_peer *agent;
	size_t i;

	if (due) {
		agents->pinged_ns = now_ns;
		agents->full = false;
	}
	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		if (agent->link && agent->node < 0 &&
		    now_ns - agent->since_ns > ms(DDP_PROOF_MS))
			close_link(agent);
		if (!agent->link || agent->node < 0)
			continue;
		node = get_node(agents, agent);
		if (due || (decides && node->answered_ns < failed_ns))
			ping(agents, agent);
		/* A PING may have lost it. */
		node->unreachable = decides && agent->link &&
				    is_unreachable(agent);
		node->silent = node->asked_ns &&
			now_ns - node->asked_ns > ms(DDP_SILENT_MS);
	}
}

void ddp_agents_tell(struct ddp_agents *agents, enum ddp_wire_kind kind,
		     int signal)
{
	const struct ddp_wire wire = {
		.kind = kind, .status = (uint32_t)signal,
	};
	size_t i;

	agents->ends |= kind == DDP_WIRE_KILL;
	for (i = 0; i < agents->count; i++)
		if (agents->all[i].node >= 0)
			send_wire(agents, &agents->all[i], &wire);
}
