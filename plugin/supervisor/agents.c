/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections to the agents, and what comes over them. */
#define _GNU_SOURCE
#include "supervisor/agents.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/now.h"

enum {
	PROOF_MS = 10000,
	SILENT_MS = 2500,	/* a machine */
	UNHEARD_MS = 3000,	/* an agent, which is asked each second */
	STRANGERS_MAX = 1024,	/* who have not proven themselves yet */
	ACCEPT_MAX = 64		/* at once */
};

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

/*
 * A node is lost where nothing answers for its machine. Where the kernel there
 * says that the connection is no more, the agent alone has ended.
 */
static void lose(struct ddp_agents *agents, struct ddp_peer *agent, int why)
{
	struct ddp_step_node *node;

	close_link(agent);
	if (agent->node < 0 || agent->done)
		return;
	node = &agents->step->nodes[agent->node];
	if (why == 0 || why == EPROTO || why == ECONNRESET || why == EPIPE ||
	    why == ENOBUFS) {
		agent->left = node->left = true;
		agent->since_ns = node->left_ns = ddp_clock_ns();
	} else if (!node->orphaned) {
		node->lost = true;
		node->lost_ns = agent->heard_ns;
		agents->step->failed = true;
	}
}

void ddp_agents_send(struct ddp_agents *agents, struct ddp_peer *agent,
		     const struct ddp_wire *wire)
{
	if (agent->link && ddp_link_send(agent->link, wire) < 0)
		lose(agents, agent, errno);
}

void ddp_agents_ping(struct ddp_agents *agents, struct ddp_peer *agent)
{
	const struct ddp_wire wire = {
		.kind = DDP_WIRE_PING, .at_ns = (uint64_t)ddp_clock_ns(),
	};

	if (agent->asked_ns)
		return;
	agent->asked_ns = ddp_clock_ns();
	ddp_agents_send(agents, agent, &wire);
}

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
	ddp_agents_send(agents, agent, &wire);
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
	ddp_text_add(&text, "slurm-ddp: only %zu nodes are watched: %s; raise "
		     "ulimit -n\n", ddp_agents_open(agents), strerror(error));
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
		else if (!ddp_agents_hear(agents, agent, &wire))
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

void ddp_agents_tick(struct ddp_agents *agents, int64_t now_ns)
{
	bool pings = now_ns - agents->pinged_ns >= ms(DDP_AGENTS_PING_MS);
	struct ddp_peer *agent;
	size_t i;

	if (pings) {
		agents->pinged_ns = now_ns;
		agents->full = false;
	}
	for (i = 0; i < agents->count; i++) {
		agent = &agents->all[i];
		if (agent->link && agent->node < 0 &&
		    now_ns - agent->since_ns > ms(PROOF_MS))
			close_link(agent);
		if (!agent->link || agent->node < 0)
			continue;
		if (pings)
			ddp_agents_ping(agents, agent);
		agents->step->nodes[agent->node].silent = agent->asked_ns &&
			now_ns - agent->asked_ns > ms(UNHEARD_MS);
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
			ddp_agents_send(agents, &agents->all[i], &wire);
}

size_t ddp_agents_open(const struct ddp_agents *agents)
{
	size_t i, count = 0;

	for (i = 0; i < agents->count; i++)
		count += agents->all[i].link && agents->all[i].node >= 0;
	return count;
}

/*
 * The kernels ask each other each second, and answer for an agent that is
 * stopped or suspended.
 */
static bool is_silent(const struct ddp_peer *agent)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	return agent->link && agent->node >= 0 &&
	       getsockopt(ddp_link_fd(agent->link), IPPROTO_TCP, TCP_INFO,
			  &info, &size) == 0 &&
	       info.tcpi_last_ack_recv > SILENT_MS;
}

bool ddp_agents_silent(const struct ddp_agents *agents)
{
	size_t i;

	for (i = 0; i < agents->count; i++)
		if (is_silent(&agents->all[i]))
			return true;
	return false;
}

bool ddp_agents_over(const struct ddp_agents *agents)
{
	const struct ddp_step *step = agents->step;
	uint32_t ranks = 0;
	size_t i;

	for (i = 0; i < agents->count; i++) {
		if (agents->all[i].node < 0)
			continue;
		if (agents->all[i].link || agents->all[i].left)
			return false;
		ranks += step->nodes[agents->all[i].node].count;
	}
	return step->world_size > 0 && ranks == step->world_size;
}
