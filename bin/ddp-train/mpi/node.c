/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a node: who they are, and what they publish in the window. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collective.h"
#include "mpi/node.h"

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

void node_open(struct node *node, struct watch *watch,
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

void node_plan_window(struct node *node, size_t bytes, size_t own)
{
	window_set_bytes(&node->window, COUNTS * sizeof(struct counter) +
			 bytes, own);
}

void node_use_window(struct node *node)
{
	for (int rank = 0; rank < node->size; rank++) {
		char *segment = node->window.base +
			(size_t)rank * node->window.segment;

		node->counters[rank] = (struct counter *)segment;
		node->copy[rank] = (char *)(node->counters[rank] + COUNTS);
	}
}

void node_forget(const struct node *node, size_t begin, size_t count)
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

void node_publish(const struct node *node, enum count count, uint64_t tickets)
{
	atomic_store_explicit(&node->counters[node->rank][count].tickets,
			      tickets, memory_order_release);
}

uint64_t node_find_least(const struct node *node, enum count count)
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

void node_close(struct node *node)
{
	window_close(&node->window);
	MPI_Comm_free(&node->comm);
	free(node->place);
	free(node->counters);
	free(node->copy);
}
