/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's judge: waits for what the ranks tell, and decides. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/hostlist.h"
#include "layout/mapping.h"
#include "layout/tasks.h"
#include "preflight_server.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/text.h"

enum {
	ASK_MS = 3000,		/* who is there answers at once */
	NAP_MS = 300		/* for output on its way: srun drops some of it
				 * when a step is killed */
};

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

static bool has_gpus(const struct server *server)
{
	for (int rank = 0; rank < server->world.size; rank++)
		if (server->facts[rank].gpus_given > 0)
			return true;
	return false;
}

static bool wait_until(struct server *server, bool done(const struct server *),
		       int64_t deadline)
{
	while (!done(server) && ddp_clock_ms() < deadline)
		server_wait(server, deadline);
	return done(server);
}

/* Returns true if all that have come are there still. */
static bool ask(struct server *server)
{
	for (int rank = 0; rank < server->world.size; rank++)
		server->states[rank].here = false;
	server_tell(server, WORD_ASK, 0);
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
			server_wait(server, end);
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
	server_tell(server, WORD_GO, backend == &backend_mpi ? GO_MPI : GO_NCCL);
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
	server_tell(server, WORD_TELL, 0);
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
	server_tell(server, WORD_END, (uint32_t)status);
	return status;
}

/* Nothing is freed: the process ends with it. */
int preflight_serve(const struct preflight *preflight, int fd)
{
	struct server server;

	if (server_create(&server, preflight, fd) < 0)
		return 1;
	check(&server);
	return end(&server);
}
