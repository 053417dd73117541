/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0's judge: lets ranks connect, reads what comes from them, waits for
 * what they tell, and decides.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "layout/hostlist.h"
#include "layout/tasks.h"
#include "preflight.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/net.h"
#include "util/text.h"

enum {
	STRANGERS = 64,		/* connections that need not be ranks' */
	ASK_MS = 3000,		/* who is there answers at once */
	NAP_MS = 300		/* for output on its way: srun drops some of it
				 * when a step is killed */
};

/* ---- the connections */

/* A connection; count bytes of the next message are here. */
struct peer {
	int fd;
	int rank;			/* -1: it has not said hello */
	size_t count;
	struct message message;
};

/* A rank's connection, and which messages have come from it. */
struct state {
	bool hello, facts, moved, here;
	int fd;				/* -1: it is not connected */
};

struct server {
	const struct preflight *preflight;
	struct world world;
	struct peer *peers;		/* [room] */
	struct pollfd *fds;		/* [room + 1]; the first listens */
	size_t peer_count, room;
	struct state *states;		/* of all ranks, as the next */
	struct facts *facts;
	struct moved *moved;
	struct verdict verdict;
	int64_t news_ms;		/* the last thing that came */
	bool asked;			/* and since then all were asked */
	const char *why_not_moved;
	bool named;			/* where all ranks are is known */
	double begin_s;
};

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
		server->facts[rank].gpus_untried = message->facts.gpus_untried;
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

/* Take in what comes, once, by a deadline of ddp_clock_ms. */
static void wait_server(struct server *server, int64_t deadline)
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

/* Say a word to all ranks that are connected. */
static void tell_all(struct server *server, enum word_kind kind, uint32_t value)
{
	struct word word = { .kind = kind, .value = value };

	memcpy(word.tag, server->preflight->tag, sizeof(word.tag));
	for (int rank = 0; rank < server->world.size; rank++)
		if (server->states[rank].fd >= 0)
			preflight_send(server->states[rank].fd, &word,
				       sizeof(word));
}

/* fd listens. Returns 0; -1: memory is short. */
static int create_server(struct server *server,
			 const struct preflight *preflight, int fd)
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

/* ---- waiting */

static int count_absent(const struct server *server)
{
	int count = 0;

	for (int rank = 0; rank < server->world.size; rank++)
		count += !server->states[rank].hello;
	return count;
}

static bool has_come(const struct server *server)
{
	return count_absent(server) == 0;
}

static int count_silent(const struct server *server)
{
	int count = 0;

	for (int rank = 0; rank < server->world.size; rank++)
		count += !server->states[rank].facts;
	return count;
}

static bool has_facts(const struct server *server)
{
	return count_silent(server) == 0;
}

static int count_last(const struct server *server)
{
	return verdict_count_last(&server->world, server->moved);
}

/* Returns true if all have moved, or one has failed, for which the others would
 * wait. */
static bool has_moved(const struct server *server)
{
	bool all = true;

	for (int rank = 0; rank < server->world.size; rank++) {
		if (server->moved[rank].error[0] != '\0')
			return true;
		all &= server->states[rank].moved;
	}
	return all;
}

static bool has_answered(const struct server *server)
{
	for (int rank = 0; rank < server->world.size; rank++)
		if (server->states[rank].hello && !server->states[rank].here)
			return false;
	return true;
}

/* Returns true if NCCL can be tried: it cannot use GPUs by AMD. */
static bool has_gpus(const struct server *server)
{
	bool any = false;

	for (int rank = 0; rank < server->world.size; rank++) {
		if (server->facts[rank].gpus_untried > 0)
			return false;
		any |= server->facts[rank].gpus_given > 0;
	}
	return any;
}

static bool wait_until(struct server *server, bool done(const struct server *),
		       int64_t deadline)
{
	while (!done(server) && ddp_clock_ms() < deadline)
		wait_server(server, deadline);
	return done(server);
}

/* Returns true if all that have come are there still. */
static bool ask(struct server *server)
{
	for (int rank = 0; rank < server->world.size; rank++)
		server->states[rank].here = false;
	tell_all(server, WORD_ASK, 0);
	return wait_until(server, has_answered, ddp_clock_ms() + ASK_MS);
}

/* Returns true if nobody is known to be at fault: most are behind the others,
 * or news has come meanwhile. */
static bool is_only_slow(struct server *server,
			 int count_behind(const struct server *))
{
	const int64_t news_ms = server->news_ms;
	bool there = ask(server);

	if (server->news_ms != news_ms)
		return true;
	server->asked = true;
	return there && 2 * count_behind(server) > server->world.size;
}

/*
 * Wait until done, or nothing has come for too long; gpus: what is done needs
 * them.
 */
static bool collect(struct server *server, bool done(const struct server *),
		    int count_behind(const struct server *), bool gpus)
{
	const struct options *options = server->preflight->options;
	int64_t limit = preflight_limit_ms(options, gpus);
	int64_t patience = preflight_patience_ms(options, gpus);

	server->news_ms = ddp_clock_ms();
	server->asked = false;
	while (!done(server) && !server->verdict.failed) {
		int64_t end = server->news_ms +
			(server->asked ? patience : limit);

		if (ddp_clock_ms() < end)
			wait_server(server, end);
		else if (server->asked || !is_only_slow(server, count_behind))
			return false;
	}
	return true;
}

/* Returns each rank's node, as Slurm says; NULL if it is not known. */
static uint32_t *find_order(const struct ddp_hostlist *hosts, size_t size)
{
	size_t count = ddp_hostlist_count(hosts), rank = 0;
	const char *mapping = getenv("SLURM_PMIX_MAPPING_SERV");
	const char *text = getenv("SLURM_STEP_TASKS_PER_NODE");
	uint32_t *tasks, *order;

	if (mapping)
		return ddp_mapping_parse(mapping, count, size, NULL);
	tasks = calloc(count, sizeof(*tasks));
	order = calloc(size, sizeof(*order));
	if (tasks && order && text &&
	    ddp_tasks_parse(text, count, tasks, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			for (; tasks[i] > 0 && rank < size; tasks[i]--)
				order[rank++] = (uint32_t)i;
	free(tasks);
	if (rank == size)
		return order;
	free(order);
	return NULL;
}

/* Nodes of ranks that have not come: by Slurm's word, if that fits the rest. */
static void name_absent(struct server *server)
{
	const char *list = getenv("SLURM_STEP_NODELIST");
	struct ddp_hostlist *hosts = ddp_hostlist_create(list, NULL);
	size_t size = (size_t)server->world.size;
	uint32_t *order = hosts ? find_order(hosts, size) : NULL;
	struct member *members = server->world.members;
	bool fits = order != NULL;

	for (size_t rank = 0; rank < size && fits; rank++)
		fits = !server->states[rank].hello ||
			strcmp(ddp_hostlist_get(hosts, order[rank]),
			       members[rank].host) == 0;
	for (size_t rank = 0; rank < size; rank++)
		if (!server->states[rank].hello && fits)
			snprintf(members[rank].host, sizeof(members->host),
				 "%.63s", ddp_hostlist_get(hosts, order[rank]));
		else if (!server->states[rank].hello)
			snprintf(members[rank].host, sizeof(members->host),
				 "the node of rank %zu", rank);
	server->named = fits || has_come(server);
	free(order);
	ddp_hostlist_destroy(hosts);
}

static void name_nodes(struct server *server)
{
	name_absent(server);
	for (int rank = 0; rank < server->world.size; rank++)
		world_find_node(&server->world, rank);
}

static void judge_absent(struct server *server, bool began)
{
	bool *here = calloc((size_t)server->world.size, sizeof(*here));

	if (!here) {
		server->verdict.failed = true;
		return;
	}
	for (int rank = 0; rank < server->world.size; rank++)
		here[rank] = server->states[rank].here;
	verdict_absent(&server->verdict, &server->world, here, began);
	free(here);
}

static const struct backend *choose_backend(const struct server *server)
{
	const struct options *options = server->preflight->options;

	return options->backend_given ? options->backend :
		has_gpus(server) ? &backend_nccl : &backend_mpi;
}

/* Other findings could make MPI or NCCL fail, or hang, in the same way. */
static bool can_move(const struct server *server)
{
	const struct verdict *verdict = &server->verdict;

	for (size_t i = 0; i < verdict->count; i++)
		if (strcmp(verdict->list[i].check, "clock") != 0 &&
		    strcmp(verdict->list[i].check, "link") != 0)
			return false;
	return true;
}

static void move(struct server *server)
{
	const struct backend *backend = choose_backend(server);

	if (!can_move(server)) {
		server->why_not_moved = "what is wrong comes first";
		return;
	}
	if (!backend->describe) {
		server->why_not_moved = "this ddp-bench was built without MPI";
		return;
	}
	server->world.backend = backend;
	tell_all(server, WORD_GO, backend == &backend_mpi ? GO_MPI : GO_NCCL);
	if (!collect(server, has_moved, count_last, has_gpus(server)))
		judge_absent(server, true);
	if (can_move(server))
		verdict_moved(&server->verdict, &server->world, server->moved);
}

/* If a rank is there, but has a worker that hangs, its own process tells. */
static bool collect_facts(struct server *server)
{
	if (collect(server, has_facts, count_silent, has_gpus(server)))
		return true;
	if (!has_answered(server))
		return false;
	tell_all(server, WORD_TELL, 0);
	return wait_until(server, has_facts, ddp_clock_ms() + ASK_MS);
}

static void check(struct server *server)
{
	bool come = collect(server, has_come, count_absent, false);
	bool all = come && collect_facts(server);

	name_nodes(server);
	if (!all)
		judge_absent(server, come);
	else
		verdict_facts(&server->verdict, &server->world, server->facts);
	move(server);
}

static int end(struct server *server)
{
	const struct preflight_summary summary = {
		.world = &server->world,
		.facts = server->facts,
		.backend = server->world.backend ?
			server->world.backend->name : NULL,
		.why_not_moved = server->why_not_moved,
		.named = server->named,
		.seconds = ddp_clock_seconds() - server->begin_s
	};
	struct ddp_error error = { 0 };
	int status = verdict_is_bad(&server->verdict);

	preflight_print(&summary, &server->verdict,
			server->preflight->options->json);
	if (tool_flush(&error) < 0) {
		tool_print_error("ddp-bench", &error);
		status = 1;
	}
	if (status)
		poll(NULL, 0, NAP_MS);
	tell_all(server, WORD_END, (uint32_t)status);
	return status;
}

int preflight_listen(const struct preflight *preflight, char why[WHY_TEXT])
{
	int fd = ddp_listen_at((uint16_t)atoi(preflight->port), true);

	if (fd < 0)
		snprintf(why, WHY_TEXT, "cannot listen at MASTER_PORT %.16s: "
			 "%s; end what uses the port", preflight->port,
			 strerror(errno));
	return fd;
}

/* Nothing is freed: the process ends with it. */
int preflight_serve(const struct preflight *preflight, int fd)
{
	struct server server;

	if (create_server(&server, preflight, fd) < 0)
		return 1;
	check(&server);
	return end(&server);
}
