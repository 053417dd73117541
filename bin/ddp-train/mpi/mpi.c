/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks over MPI; read this first. Those of a node have their buffers
 * ("copies") in one shared window (window.h) from the start, so that a rank
 * sums its slice straight from all copies into all copies. Between nodes slices
 * travel in chunks (reduce.h). Here the tickets are worked off. What a rank
 * waits for has a deadline (watch.h).
 *
 * A rank publishes two counters in the window: `ready`, the number of tickets
 * whose event has come, and `done`, the number after which it touches neither
 * its own copy nor another. Tickets are worked off in order, one at a time, by
 * poll() alone: in the backward pass no rank waits for another.
 *
 * Failures of MPI itself end the world: MPI_ERRORS_ARE_FATAL, the default.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#ifdef HAVE_PMIX
#include <pmix.h>
#endif

#include "mpi/reduce.h"
#include "mpi/watch.h"
#include "tool/mpi_private.h"
#include "util/error.h"

/* ---- the ranks of a node, and what they publish in the window */

static void count_nodes(const struct place *place,
			struct collective *collective)
{
	collective->nodes = collective->most = 0;
	for (int rank = 0; rank < collective->size; rank++) {
		collective->nodes += place[rank].leader == rank;
		if (place[rank].local >= collective->most)
			collective->most = place[rank].local + 1;
	}
}

/* Finds the ranks of this node; sets nodes and most of collective. */
static void node_open(struct node *node, struct watch *watch,
		      struct collective *collective)
{
	struct place place = { .leader = collective->rank };

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
			    collective->rank, MPI_INFO_NULL, &node->comm);
	MPI_Comm_rank(node->comm, &node->rank);
	MPI_Comm_size(node->comm, &node->size);
	place.local = node->rank;
	node->place = calloc((size_t)collective->size, sizeof(place));
	node->counters = calloc((size_t)node->size, sizeof(*node->counters));
	node->copy = calloc((size_t)node->size, sizeof(*node->copy));
	if (window_open(&node->window, node->comm, watch) < 0 || !node->place ||
	    !node->counters || !node->copy)
		collective->table->abort(collective, "no memory for the list "
					 "of ranks");
	MPI_Bcast(&place.leader, 1, MPI_INT, 0, node->comm);
	MPI_Allgather(&place, 2, MPI_INT, node->place, 2, MPI_INT,
		      MPI_COMM_WORLD);
	count_nodes(node->place, collective);
}

/* Finds each rank's counters and copy in the window, after its steps. */
static void node_use_window(struct node *node)
{
	for (int rank = 0; rank < node->size; rank++) {
		char *segment = node->window.base +
			(size_t)rank * node->window.segment;

		node->counters[rank] = (struct counter *)segment;
		node->copy[rank] = (char *)(node->counters[rank] + COUNTS);
	}
}

/*
 * Unmaps bytes begin .. begin + count - 1 of the other ranks' copies until this
 * process touches them again. They stay as they are.
 */
static void node_forget(const struct node *node, size_t begin, size_t count)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (int rank = 0; rank < node->size; rank++) {
		uintptr_t at = (uintptr_t)(node->copy[rank] + begin);
		uintptr_t end = (uintptr_t)(node->copy[rank] + begin + count);

		at = (at + page - 1) / page * page;
		end = end / page * page;
		if (rank != node->rank && at < end)
			madvise((void *)at, end - at, MADV_DONTNEED);
	}
}

/* Publishes that this rank is ready for so many tickets, or done with them. */
static void node_publish(const struct node *node, enum count count,
			 uint64_t tickets)
{
	atomic_store_explicit(&node->counters[node->rank][count].tickets,
			      tickets, memory_order_release);
}

/* Returns how many all ranks of this node have published. */
static uint64_t node_find_least(const struct node *node, enum count count)
{
	uint64_t least = UINT64_MAX;

	for (int rank = 0; rank < node->size; rank++) {
		uint64_t tickets = atomic_load_explicit(
			&node->counters[rank][count].tickets,
			memory_order_acquire);

		least = tickets < least ? tickets : least;
	}
	return least;
}

/* Collective within the node. */
static void node_close(struct node *node)
{
	window_close(&node->window);
	MPI_Comm_free(&node->comm);
	free(node->place);
	free(node->counters);
	free(node->copy);
}

/* ---- the table */

enum { TICKETS = 256 };		/* at once; start() waits for a free one */

struct mpi {
	struct watch watch;
	struct node node;
	struct exchange exchange;
	struct device *device;
	struct ticket tickets[TICKETS];	/* number n is at n % TICKETS */
	uint64_t started;		/* tickets, so far */
	uint64_t ready, done;		/* what this rank has published */
	bool busy;			/* with done + 1 */
};

static void abort_world(struct collective *collective, const char *text)
{
	(void)collective;
	tool_mpi_abort("ddp-train", text);
}

/*
 * Between two polls no rank answers. A message that needs the receiver's
 * consent would wait for two polls, each an operator long. So have Open MPI
 * send ours over TCP at once, unless the user has set the size from which it
 * asks first. Other MPIs ignore this.
 */
static void send_at_once(void)
{
	char bytes[32];

	snprintf(bytes, sizeof(bytes), "%zu", (size_t)MESSAGE +
		 MESSAGE_HEADER);
	setenv("OMPI_MCA_btl_tcp_eager_limit", bytes, 0);
}

/*
 * Ranks have met over PMIx already. Open MPI 5 asks PMIx who it is only where
 * PMIx has not begun, and dies if it has. So while MPI begins, this hides it,
 * in the place of PMIx's own function, which takes a libpmix that is shared;
 * PMIx counts how often it is begun.
 */
static bool beginning;

#ifdef HAVE_PMIX
int PMIx_Initialized(void)
{
	int (*initialized)(void);

	*(void **)&initialized = dlsym(RTLD_NEXT, __func__);
	return !beginning && initialized && initialized();
}
#endif

static int open_world(struct collective *collective, struct ddp_error *error)
{
	struct mpi *mpi = calloc(1, sizeof(*mpi));
	int result;

	send_at_once();
	beginning = true;
	result = tool_mpi_open(error);
	beginning = false;
	if (result < 0) {
		free(mpi);
		return -1;
	}
	tool_mpi_hide();
	if (!mpi)
		abort_world(collective, "no memory for MPI");
	MPI_Comm_rank(MPI_COMM_WORLD, &collective->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &collective->size);
	collective->state = mpi;
	watch_open(&mpi->watch, collective);
	node_open(&mpi->node, &mpi->watch, collective);
	return 0;
}

/* The first rank's error, on all of them. */
static int agree_on_error(const struct collective *collective,
			  struct ddp_error *mine, struct ddp_error *error)
{
	struct mpi *mpi = collective->state;
	int first = mine->code == DDP_ERROR_NONE ? collective->size :
		collective->rank;
	MPI_Request request;

	MPI_Iallreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN,
		       MPI_COMM_WORLD, &request);
	watch_finish(&mpi->watch, &request);
	if (first == collective->size)
		return 0;
	MPI_Ibcast(mine, sizeof(*mine), MPI_BYTE, first, MPI_COMM_WORLD,
		   &request);
	watch_finish(&mpi->watch, &request);
	return ddp_error_set(error, mine->code, "%s", mine->text);
}

static void *allocate_window(struct collective *collective,
			     struct device *device,
			     const struct collective_plan *plan,
			     struct ddp_error *error)
{
	struct mpi *mpi = collective->state;
	struct ddp_error mine = { 0 };

	window_set_bytes(&mpi->node.window, COUNTS * sizeof(struct counter) +
			 plan->bytes, plan->own);
	for (int step = 0; step < WINDOW_STEPS; step++) {
		window_steps[step](&mpi->node.window, &mine);
		if (agree_on_error(collective, &mine, error) < 0)
			return NULL;
	}
	node_use_window(&mpi->node);
	exchange_alloc(&mpi->exchange, &mpi->node, collective, plan, &mine);
	if (agree_on_error(collective, &mine, error) < 0)
		return NULL;
	mpi->device = device;
	return mpi->node.copy[mpi->node.rank];
}

/* Publish for which tickets my values are ready. */
static void publish_ready(struct mpi *mpi)
{
	const struct device_table *table = mpi->device->table;
	uint64_t ready = mpi->ready;

	while (ready < mpi->started &&
	       table->query(mpi->device,
			    mpi->tickets[(ready + 1) % TICKETS].event))
		ready++;
	if (ready == mpi->ready)
		return;
	mpi->ready = ready;
	node_publish(&mpi->node, READY, ready);
}

static void poll_tickets(struct collective *collective)
{
	struct mpi *mpi = collective->state;

	if (mpi->done == mpi->started) {
		exchange_idle(&mpi->exchange);
		return;
	}
	publish_ready(mpi);
	while (mpi->done < mpi->ready) {
		uint64_t next = mpi->done + 1;
		const struct ticket *ticket = &mpi->tickets[next % TICKETS];

		if (!mpi->busy) {
			if (node_find_least(&mpi->node, READY) < next)
				return;
			exchange_begin(&mpi->exchange, ticket);
			mpi->busy = true;
		}
		if (!exchange_poll(&mpi->exchange))
			return;
		/* Slurm would count the copies as this rank's memory, too. */
		if (ticket->op == BROADCAST)
			node_forget(&mpi->node, ticket->begin,
				    ticket->count * ticket->bytes);
		mpi->busy = false;
		mpi->done = next;
		node_publish(&mpi->node, DONE, next);
	}
}

static void wait_round(struct collective *collective, struct wait *wait)
{
	struct mpi *mpi = collective->state;

	poll_tickets(collective);
	watch_wait(&mpi->watch, wait);
}

static uint64_t start_ticket(struct collective *collective,
			     enum collective_op op, size_t offset, size_t count,
			     enum device_type type, int event)
{
	struct mpi *mpi = collective->state;
	uint64_t number = mpi->started + 1;
	size_t bytes = device_type_bytes(type);
	struct wait wait = { 0 };

	while (number - mpi->done > TICKETS)
		wait_round(collective, &wait);
	mpi->tickets[number % TICKETS] = (struct ticket){
		.op = op, .type = type, .bytes = bytes,
		.begin = offset * bytes, .count = count, .event = event,
		.number = (int)(number % TICKETS)
	};
	mpi->started = number;
	publish_ready(mpi);
	return number;
}

static void wait_for_ticket(struct collective *collective, uint64_t ticket,
			    enum device_queue queue)
{
	struct mpi *mpi = collective->state;
	struct wait wait = { 0 };

	(void)queue;
	while (node_find_least(&mpi->node, DONE) < ticket)
		wait_round(collective, &wait);
}

static void agree(struct collective *collective, const void *mine,
		  void *all, size_t bytes)
{
	struct wait wait = { 0 };
	MPI_Request request;
	int done = 0;

	MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
		       MPI_COMM_WORLD, &request);
	while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
		wait_round(collective, &wait);
}

static void close_world(struct collective *collective)
{
	struct mpi *mpi = collective->state;

	exchange_free(&mpi->exchange);
	node_close(&mpi->node);
	watch_close(&mpi->watch);
	free(mpi);
	collective->state = NULL;
	tool_mpi_close();
}

const struct collective_table collective_mpi = {
	.abi = COLLECTIVE_ABI,
	.name = "mpi",
	.open = open_world,
	.close = close_world,
	.alloc = allocate_window,
	.start = start_ticket,
	.poll = poll_tickets,
	.wait = wait_for_ticket,
	.agree = agree,
	.abort = abort_world
};
