/* SPDX-License-Identifier: BSD-3-Clause */
/* The course of a preflight: three exchanges, and what is done between them. */
#define _GNU_SOURCE
#include "preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/absent.h"
#include "job/client.h"
#include "job/exchange.h"
#include "job/job.h"
#include "outliers.h"
#include "tool/promise.h"
#include "tool/tool.h"

enum {
	TIMES = 4,		/* a node has to be slow */
	ASK_MS = 1500,		/* who is absent */
	FIRST = 4,		/* ranks, of which one will tell that */
	NAP_MS = 300		/* for output on its way: srun drops some of it
				 * when a step is killed */
};

/* A node that is so slow is so for certain. */
#define SURE_S 0.1
#define SURE_RATIO 10

struct preflight {
	const struct options *options;
	struct ddp_job *job;
	struct world world;
	struct facts *facts;		/* of all ranks, as those below */
	struct probe *probes;
	struct moved *moved;
	bool *here;			/* [ranks]: came to the last exchange */
	double *times;			/* [nodes] */
	double median;			/* of times */
	bool *slow, *slow_now;		/* [nodes]: each time; the last time */
	struct mover *mover;
	const char *why_not_moved;	/* NULL: it was, or is to be */
	bool stuck;			/* a rank's mover hangs */
	double begin_s;
	int64_t met_ms;			/* when all ranks had come */
	struct verdict verdict;
};

/* ---- beginning */

static int make_world(struct preflight *p, struct ddp_error *error)
{
	struct ddp_job *job = p->job;
	uint32_t size = ddp_job_size(job);
	struct world *world = &p->world;

	*world = (struct world){
		.rank = (int)ddp_job_rank(job), .size = (int)size,
		.node_count = (int)ddp_job_node_count(job),
		.members = calloc(size, sizeof(*world->members))
	};
	p->facts = calloc(size, sizeof(*p->facts));
	p->probes = calloc(size, sizeof(*p->probes));
	p->moved = calloc(size, sizeof(*p->moved));
	p->here = malloc(size * sizeof(*p->here));
	p->times = calloc((size_t)world->node_count, sizeof(*p->times));
	p->slow = calloc((size_t)world->node_count, sizeof(*p->slow));
	p->slow_now = calloc((size_t)world->node_count, sizeof(*p->slow));
	if (!world->members || !p->facts || !p->probes || !p->moved ||
	    !p->here || !p->times || !p->slow || !p->slow_now)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "out of memory for %u ranks", size);
	for (uint32_t rank = 0; rank < size; rank++) {
		struct member *member = &world->members[rank];

		p->here[rank] = true;
		snprintf(member->host, sizeof(member->host), "%s",
			 ddp_job_host(job, rank));
		member->node = (int)ddp_job_node_of(job, rank);
		member->local_rank = (int)ddp_job_local_rank_of(job, rank);
	}
	return 0;
}

static int begin(struct preflight *p, const struct options *options,
		 struct ddp_error *error)
{
	const struct ddp_job_options job = {
		.size = sizeof(job),
		.timeout_ms = (int32_t)options->limit * 1000
	};

	p->begin_s = ddp_clock_seconds();
	p->options = options;
	p->job = ddp_job_create(&job, error);
	if (!p->job)
		return -1;
	ddp_job_ask_nobody(p->job);
	return make_world(p, error);
}

static void end(struct preflight *p)
{
	free(p->world.members);
	free(p->facts);
	free(p->probes);
	free(p->moved);
	free(p->here);
	free(p->times);
	free(p->slow);
	free(p->slow_now);
	verdict_clear(&p->verdict);
}

/* ---- telling each other */

/* The deadline that is so many tenths of the limit after all had come. */
static int64_t tenths(const struct preflight *p, int64_t count)
{
	return p->met_ms + (int64_t)p->options->limit * 100 * count;
}

/*
 * Who has given no record: here says so. Rank 0 asks for all. Each other rank
 * first asks for the ranks before it, up to FIRST of them: if one is here, it
 * will tell, and kill this one. The servers cannot answer it to all at once.
 */
static void call_roll(struct preflight *p)
{
	int rank = p->world.rank, size = p->world.size, before;
	uint32_t *others = calloc((size_t)size, sizeof(*others)), count = 0;
	bool alone = true;

	before = rank < FIRST ? rank : FIRST;
	if (!others)
		return;
	for (int i = 0; i < size; i++) {
		if (i == rank)
			continue;
		others[count++] = (uint32_t)i;
	}
	if (before > 0)
		ddp_absent_ask(p->job, others, (uint32_t)before, ASK_MS,
			       p->here);
	for (int i = 0; i < before; i++)
		alone &= !p->here[i];
	/* Another one tells. It may have begun later, and so wait longer. */
	if (!alone)
		usleep((useconds_t)p->options->limit * 1000000);
	ddp_absent_ask(p->job, others, count, ASK_MS, p->here);
	free(others);
}

static int read_records(struct preflight *p, char *all, size_t size,
			int64_t deadline, struct ddp_error *error)
{
	size_t length;

	for (int rank = 0; rank < p->world.size; rank++)
		if (ddp_exchange_get(p->job, (uint32_t)rank,
				     all + (size_t)rank * size, size, &length,
				     deadline, error) < 0)
			return -1;
	return 0;
}

/*
 * Collective: every rank's record to all. Returns 0, or -1 if that failed.
 *
 * PMIx cannot tell this fence from one of MPI's, in which ranks may hang. This
 * one may then end too early, without some records: at the deadline, all who
 * can have given theirs.
 */
static int tell(struct preflight *p, const void *mine, void *all, size_t size,
		int64_t deadline)
{
	struct ddp_error error = { 0 };
	int rc;

	if (ddp_job_begin(p->job, deadline, &error) < 0)
		return -1;
	rc = ddp_exchange_put(p->job, mine, size, deadline, &error);
	if (rc == 0)
		rc = read_records(p, all, size, deadline, &error);
	while (rc < 0 && ddp_clock_ms() < deadline)
		usleep(10000);
	if (rc < 0)
		call_roll(p);
	ddp_job_end(p->job);
	if (rc == 0)
		return 0;
	verdict_absent(&p->verdict, &p->world, p->here, p->met_ms > 0);
	if (p->verdict.count == 0)
		verdict_add(&p->verdict, -1, "exchange", "%.300s", error.text);
	return -1;
}

/* ---- the three parts */

static int exchange_facts(struct preflight *p)
{
	const char *port = getenv("MASTER_PORT");
	struct ddp_error error;
	struct facts mine;

	facts_gather(&mine, &backend_mpi);
	if (p->world.rank == 0 && getenv("MASTER_ADDR") && port &&
	    master_listen(port, mine.nonce, &error) < 0)
		snprintf(mine.port_error, FACT_TEXT, "%.150s", error.text);
	if (tell(p, &mine, p->facts, sizeof(mine), ddp_clock_ms() +
		 (int64_t)p->options->limit * 1000) < 0)
		return -1;
	p->met_ms = ddp_clock_ms();
	verdict_facts(&p->verdict, &p->world, p->facts);
	return 0;
}

static bool has_gpus(const struct preflight *p)
{
	for (int rank = 0; rank < p->world.size; rank++)
		if (p->facts[rank].gpus_given > 0)
			return true;
	return false;
}

/* Whether a finding would make NCCL or MPI fail, or hang, in the same way. */
static bool can_move(const struct preflight *p)
{
	static const char *const words[] = { "gpu", "cuda", "nccl", "mpi" };

	for (size_t i = 0; i < p->verdict.count; i++)
		for (size_t j = 0; j < sizeof(words) / sizeof(*words); j++)
			if (strcmp(p->verdict.list[i].check, words[j]) == 0)
				return false;
	return true;
}

/* All ranks come to the same answer, as all know all facts. */
static void choose_mover(struct preflight *p)
{
	const char *mpi = p->facts[0].versions[MPI];

	p->world.backend = p->options->backend_given ? p->options->backend :
		has_gpus(p) ? &backend_nccl : &backend_mpi;
	if (!can_move(p))
		p->why_not_moved = "what is wrong above comes first";
	else if (p->world.backend == &backend_mpi && mpi[0] == '\0')
		p->why_not_moved = "the step has no GPU, and ddp-bench was "
			"built without MPI";
	else if (p->world.backend == &backend_mpi &&
		 strncmp(mpi, "Open MPI v", 10) == 0 && atoi(mpi + 10) >= 5)
		p->why_not_moved = "Open MPI 5 cannot begin after PMIx; run "
			"ddp-bench --pairs --backend mpi";
	else
		p->mover = mover_create(&p->world, p->options);
	if (p->world.backend == &backend_nccl)
		backend_nccl_use(p->job);
}

static int exchange_probes(struct preflight *p)
{
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	struct probe mine = { .clock_error_s = -1 };

	choose_mover(p);
	if (host && port && p->facts[0].port_error[0] == '\0')
		master_probe(host, port, p->facts[0].nonce, tenths(p, 3),
			     &mine);
	if (!p->mover && !p->why_not_moved)
		snprintf(mine.gpu_error, FACT_TEXT, "out of memory");
	if (p->mover && mover_prepare(p->mover, &mine, tenths(p, 5)) < 0)
		p->mover = NULL;
	if (tell(p, &mine, p->probes, sizeof(mine), tenths(p, 7)) < 0)
		return -1;
	verdict_probes(&p->verdict, &p->world, p->probes);
	if (!p->why_not_moved && !can_move(p))
		p->why_not_moved = "what is wrong above comes first";
	return 0;
}

static int exchange_moved(struct preflight *p, const struct moved *mine,
			  int64_t deadline)
{
	if (tell(p, mine, p->moved, sizeof(*mine), deadline) < 0)
		return -1;
	for (int rank = 0; rank < p->world.size; rank++)
		p->stuck |= !p->moved[rank].ended;
	return 0;
}

/*
 * All ranks play, and know all results. Returns how many nodes are slow that
 * were slow before, too; 0 as well if there is something worse.
 */
static int play(struct preflight *p, bool first, int64_t deadline)
{
	struct moved mine = { 0 };
	int count = 0;

	mover_play(p->mover, &mine, deadline);
	if (exchange_moved(p, &mine, deadline + 1000) < 0)
		return -1;
	verdict_matches(&p->verdict, &p->world, p->moved);
	if (p->stuck || p->verdict.failed || !can_move(p))
		return 0;
	verdict_times(&p->world, p->moved, p->times);
	if (verdict_find_slow(p->times, p->world.node_count, p->slow_now,
			      &p->median) < 0)
		p->verdict.failed = true;
	for (int node = 0; node < p->world.node_count; node++) {
		p->slow[node] = p->slow_now[node] && (first || p->slow[node]);
		count += p->slow[node];
	}
	return count;
}

static void name_slow(struct preflight *p)
{
	for (int rank = 0; rank < p->world.size; rank++) {
		int node = p->world.members[rank].node;

		if (p->slow[node])
			verdict_add(&p->verdict, node, "slow", "it takes %.1f "
				    "ms for an exchange for which the median "
				    "of the nodes is %.1f ms: look at its "
				    "cable, its switch port and what else runs "
				    "there", p->times[node] * 1e3,
				    p->median * 1e3);
	}
}

/* Too slow for it to come from other programs, which may hold a node up. */
static bool is_sure(const struct preflight *p)
{
	for (int node = 0; node < p->world.node_count; node++)
		if (p->slow[node] && (p->times[node] < SURE_S ||
				      p->times[node] < SURE_RATIO * p->median))
			return false;
	return true;
}

/* Matches: a node is slow if it is so each time. Then the all-reduce. */
static int exchange_matches(struct preflight *p)
{
	struct moved mine = { 0 };
	int slow = play(p, true, tenths(p, 8));

	for (int again = 1; slow > 0 && again < TIMES && !is_sure(p); again++)
		slow = play(p, false, tenths(p, 8 + 2 * again));
	if (slow < 0)
		return -1;
	name_slow(p);
	if (p->stuck || !can_move(p))
		return 0;
	mover_sum(p->mover, &mine, tenths(p, 14));
	if (exchange_moved(p, &mine, tenths(p, 15)) < 0)
		return -1;
	verdict_sums(&p->verdict, &p->world, p->moved);
	return 0;
}

static int check(struct preflight *p)
{
	if (exchange_facts(p) < 0 || exchange_probes(p) < 0)
		return -1;
	return p->why_not_moved ? 0 : exchange_matches(p);
}

/* ---- the end */

static void print(const struct preflight *p)
{
	const struct preflight_summary summary = {
		.world = &p->world,
		.facts = p->facts,
		.probes = p->probes,
		.why_not_moved = p->why_not_moved,
		.seconds = ddp_clock_seconds() - p->begin_s
	};

	preflight_print(&summary, &p->verdict, p->options->json);
}

/* The lowest rank that is here. */
static bool is_printer(const struct preflight *p)
{
	int rank = 0;

	while (rank < p->world.rank && !p->here[rank])
		rank++;
	return rank == p->world.rank;
}

/*
 * Some rank, or its mover, hangs, and would hang the end of the step: kill it.
 * Ranks that do not reach each other may all hold themselves for the printer:
 * rank 0 comes first, and the others only if it does not kill them.
 */
static _Noreturn void kill_all(struct preflight *p)
{
	if (p->world.rank > 0)
		usleep((is_printer(p) ? 4 : 10) * NAP_MS * 1000);
	print(p);
	tool_flush(NULL);
	usleep(NAP_MS * 1000);
	ddp_client_abort(1, "the preflight has failed");
	_exit(1);
}

/* Rank 0's exit status is that of the step, after all have seen it print. */
static int leave(struct preflight *p)
{
	struct ddp_error error = { 0 };
	int status = 0;

	if (p->world.rank == 0) {
		print(p);
		status = p->verdict.count > 0 || p->verdict.failed;
		if (tool_flush(&error) < 0) {
			tool_print_error("ddp-bench", &error);
			status = 1;
		}
	}
	ddp_job_barrier(p->job, NULL);
	if (p->mover && !p->why_not_moved)
		mover_close(p->mover, ddp_clock_ms() + 1000);
	if (p->world.backend == &backend_mpi || p->why_not_moved)
		ddp_job_destroy(p->job);
	end(p);
	return status;
}

int preflight_run(const struct options *options)
{
	struct preflight p = { .begin_s = 0 };
	struct ddp_error error = { 0 };

	if (begin(&p, options, &error) < 0) {
		if (tool_promise_is_first())
			tool_print_error("ddp-bench", &error);
		end(&p);
		return 1;
	}
	if (check(&p) < 0 || p.stuck)
		kill_all(&p);
	return leave(&p);
}
