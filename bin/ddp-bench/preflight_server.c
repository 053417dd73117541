/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets ranks connect, and reads what comes from them. */
#define _GNU_SOURCE
#include "preflight_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/listen.h"
#include "util/text.h"

enum { STRANGERS = 64 };	/* connections that need not be ranks' */

int preflight_listen(const struct preflight *preflight, char why[WHY_TEXT])
{
	int fd = ddp_listen_at((uint16_t)atoi(preflight->port), true);

	if (fd < 0)
		snprintf(why, WHY_TEXT, "cannot listen at MASTER_PORT %.16s: "
			 "%s; end what uses the port", preflight->port,
			 strerror(errno));
	return fd;
}

/* ---- what comes */

static void answer_clock(const struct server *server, const struct peer *peer)
{
	struct word word = { .kind = WORD_CLOCK };

	memcpy(word.tag, server->preflight->tag, sizeof(word.tag));
	word.clock_s = preflight_date();
	preflight_send(peer->fd, &word, sizeof(word));
}

static void quote_facts(struct facts *facts)
{
	for (int what = 0; what < VERSIONS; what++) {
		facts->versions[what][FACT_VERSION - 1] = '\0';
		ddp_text_quote(facts->versions[what]);
	}
	facts->gpu_error[FACT_TEXT - 1] = '\0';
	ddp_text_quote(facts->gpu_error);
	facts->bus_id[sizeof(facts->bus_id) - 1] = '\0';
	ddp_text_quote(facts->bus_id);
}

/* Returns -1 if this is nothing that a rank of this step says. */
static int take(struct server *server, struct peer *peer)
{
	const struct message *message = &peer->message;
	uint32_t rank = message->header.rank;
	struct state *state = &server->states[rank];
	struct member *member = &server->world.members[rank];

	if (message->header.kind == MESSAGE_HELLO && !state->hello) {
		peer->rank = (int)rank;
		state->fd = peer->fd;
		state->hello = true;
		snprintf(member->host, sizeof(member->host), "%.63s",
			 message->header.host);
		ddp_text_quote(member->host);
		server->facts[rank].gpus_given = message->facts.gpus_given;
	}
	if (peer->rank != (int)rank)
		return -1;
	if (message->header.kind != MESSAGE_HERE) {
		server->news_ms = ddp_clock_ms();
		server->asked = false;
	}
	switch (message->header.kind) {
	case MESSAGE_CLOCK:
		answer_clock(server, peer);
		return 0;
	case MESSAGE_FACTS:
		/* One that hung has been judged by what was told for it. */
		if (state->facts)
			return 0;
		server->facts[rank] = message->facts;
		quote_facts(&server->facts[rank]);
		state->facts = true;
		return 0;
	case MESSAGE_MOVED:
		server->moved[rank] = message->moved;
		server->moved[rank].error[FACT_TEXT - 1] = '\0';
		ddp_text_quote(server->moved[rank].error);
		state->moved = message->moved.stage == STAGE_DONE ||
			       message->moved.error[0] != '\0';
		return 0;
	case MESSAGE_HERE:
		state->here = true;
		return 0;
	}
	return message->header.kind == MESSAGE_HELLO ? 0 : -1;
}

/* Another program's, another step's, or of another ddp-bench. */
static bool is_ours(struct server *server, struct peer *peer)
{
	struct header *header = &peer->message.header;

	if (memcmp(header->tag, server->preflight->tag,
		   sizeof(header->tag)) != 0 ||
	    header->rank >= (uint32_t)server->world.size ||
	    header->world_size != (uint32_t)server->world.size)
		return false;
	if (header->size == sizeof(peer->message))
		return true;
	if (header->kind != MESSAGE_HELLO || server->states[header->rank].hello)
		return false;
	header->version[sizeof(header->version) - 1] = '\0';
	header->host[FACT_HOST - 1] = '\0';
	verdict_add(&server->verdict, -1, "ddp-bench", "%s: ddp-bench there is "
		    "that of version %s; have the same on all nodes",
		    ddp_text_quote(header->host),
		    ddp_text_quote(header->version));
	return false;
}

/* Returns -1 once the connection is of no more use. */
static int read_peer(struct server *server, struct peer *peer)
{
	char *to = (char *)&peer->message;
	ssize_t count = recv(peer->fd, to + peer->count,
			     sizeof(peer->message) - peer->count, 0);

	if (count <= 0)
		return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 :
			-1;
	peer->count += (size_t)count;
	if (peer->count >= sizeof(struct header) && !is_ours(server, peer))
		return -1;
	if (peer->count < sizeof(peer->message))
		return 0;
	peer->count = 0;
	return take(server, peer);
}

static void take_in(struct server *server)
{
	int fd = accept4(server->fds[0].fd, NULL, NULL,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);
	size_t count = server->peer_count;

	if (fd >= 0 && count == server->room) {
		close(fd);
	} else if (fd >= 0) {
		server->peers[count] = (struct peer){ .fd = fd, .rank = -1 };
		server->fds[count + 1] = (struct pollfd){ fd, POLLIN, 0 };
		server->peer_count++;
	}
}

static void drop(struct server *server, size_t i)
{
	struct peer *peer = &server->peers[i];

	if (peer->rank >= 0)
		server->states[peer->rank].fd = -1;
	close(peer->fd);
	*peer = server->peers[--server->peer_count];
	server->fds[i + 1] = server->fds[server->peer_count + 1];
}

void server_wait(struct server *server, int64_t deadline)
{
	int64_t left = deadline - ddp_clock_ms();

	if (poll(server->fds, server->peer_count + 1,
		 left > 0 ? (int)left : 0) <= 0)
		return;
	for (size_t i = server->peer_count; i-- > 0; )
		if (server->fds[i + 1].revents &&
		    read_peer(server, &server->peers[i]) < 0)
			drop(server, i);
	if (server->fds[0].revents)
		take_in(server);
}

void server_tell(struct server *server, enum word_kind kind,
		 uint32_t value)
{
	struct word word = { .kind = kind, .value = value };

	memcpy(word.tag, server->preflight->tag, sizeof(word.tag));
	for (int rank = 0; rank < server->world.size; rank++)
		if (server->states[rank].fd >= 0)
			preflight_send(server->states[rank].fd, &word,
				       sizeof(word));
}

int server_create(struct server *server, const struct preflight *preflight,
		  int fd)
{
	size_t size = (size_t)preflight->size, room = 2 * size + STRANGERS;
	struct rlimit limit;

	*server = (struct server){
		.preflight = preflight,
		.world = { .size = preflight->size,
			   .members = calloc(size, sizeof(struct member)) },
		.room = room,
		.peers = calloc(room, sizeof(*server->peers)),
		.fds = calloc(room + 1, sizeof(*server->fds)),
		.states = calloc(size, sizeof(*server->states)),
		.facts = calloc(size, sizeof(*server->facts)),
		.moved = calloc(size, sizeof(*server->moved)),
		.begin_s = ddp_clock_seconds()
	};
	if (!server->world.members || !server->peers || !server->fds ||
	    !server->states || !server->facts || !server->moved)
		return -1;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	server->fds[0] = (struct pollfd){ fd, POLLIN, 0 };
	for (size_t rank = 0; rank < size; rank++)
		server->states[rank].fd = -1;
	return 0;
}
