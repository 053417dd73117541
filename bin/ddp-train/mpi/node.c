/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "layout/error.h"
#include "mpi/state.h"

enum {
	LINE = 64,
	PAGE = 65536,		/* bytes, the largest in use */
	MESSAGES = 5 << 20	/* bytes a rank */
};

static void number_nodes(const struct place *place,
			 struct collective *collective)
{
	int mine = place[collective->rank].leader;

	collective->node = 0;
	collective->nodes = 0;
	for (int rank = 0; rank < collective->size; rank++) {
		if (place[rank].leader != rank)
			continue;
		collective->nodes++;
		collective->node += rank < mine;
	}
}

void node_open(struct node *node, struct collective *collective)
{
	struct place place = { .leader = collective->rank };

	node->window = MPI_WIN_NULL;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
			    collective->rank, MPI_INFO_NULL, &node->comm);
	MPI_Comm_rank(node->comm, &node->rank);
	MPI_Comm_size(node->comm, &node->size);
	place.local = node->rank;
	node->place = calloc((size_t)collective->size, sizeof(place));
	node->counters = calloc((size_t)node->size, sizeof(*node->counters));
	node->copy = calloc((size_t)node->size, sizeof(*node->copy));
	if (!node->place || !node->counters || !node->copy)
		collective->table->abort(collective, "no memory for the list "
					 "of ranks");
	MPI_Bcast(&place.leader, 1, MPI_INT, 0, node->comm);
	MPI_Allgather(&place, 2, MPI_INT, node->place, 2, MPI_INT,
		      MPI_COMM_WORLD);
	number_nodes(node->place, collective);
}

/* A rank's part of the window: counters, a copy, what aligns them. */
static size_t segment_bytes(size_t bytes)
{
	return COUNTS * sizeof(struct counter) + bytes + LINE;
}

/* Where MPI puts windows: Open MPI's setting, or else where all MPIs do. */
static void find_directory(char directory[PATH_MAX])
{
	MPI_T_cvar_handle handle;
	int provided, index, count;

	strcpy(directory, "/dev/shm");
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
		return;
	if (MPI_T_cvar_get_index("osc_sm_backing_directory", &index) ==
	    MPI_SUCCESS &&
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) ==
	    MPI_SUCCESS) {
		if (count <= PATH_MAX)
			MPI_T_cvar_read(handle, directory);
		MPI_T_cvar_handle_free(&handle);
	}
	MPI_T_finalize();
}

/* Of the file system that windows lie in, whose directory it fills in. */
static size_t free_bytes(char directory[PATH_MAX])
{
	struct statvfs file_system;

	find_directory(directory);
	if (statvfs(directory, &file_system) < 0)
		return 0;
	return file_system.f_bavail * file_system.f_frsize;
}

/*
 * Open MPI wants 5% more than it takes, and hangs where it finds less; in
 * front of it lie messages of its own, of which it has not touched all.
 */
static size_t needed_bytes(const struct node *node, size_t bytes)
{
	size_t ranks = (size_t)node->size;
	size_t window = ranks * (segment_bytes(bytes) + PAGE);

	return window + window / 20 + ranks * MESSAGES;
}

static int no_room(const struct node *node, size_t bytes,
		   struct ddp_error *error)
{
	char directory[PATH_MAX], host[256] = "";
	size_t available = free_bytes(directory);

	gethostname(host, sizeof(host) - 1);
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s on %s has %zu bytes "
			     "free, but the gradients and parameters of %d "
			     "ranks there need %zu bytes of shared memory; "
			     "enlarge it, start fewer ranks on a node or train "
			     "a smaller model", directory, host, available,
			     node->size, needed_bytes(node, bytes));
}

int node_check_room(const struct node *node, size_t bytes,
		    struct ddp_error *error)
{
	char directory[PATH_MAX];

	/* A rank alone gets ordinary memory. */
	if (node->rank > 0 || node->size == 1 ||
	    free_bytes(directory) >= needed_bytes(node, bytes))
		return 0;
	return no_room(node, bytes, error);
}

int node_alloc(struct node *node, size_t bytes, struct ddp_error *error)
{
	size_t segment = segment_bytes(bytes);
	void *base;
	MPI_Info info;
	int status;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", "true");
	MPI_Comm_set_errhandler(node->comm, MPI_ERRORS_RETURN);
	status = MPI_Win_allocate_shared((MPI_Aint)segment, 1, info,
					 node->comm, &base, &node->window);
	MPI_Comm_set_errhandler(node->comm, MPI_ERRORS_ARE_FATAL);
	MPI_Info_free(&info);
	if (status != MPI_SUCCESS) {
		node->window = MPI_WIN_NULL;
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "MPI has no "
				     "shared window of %zu bytes for each of "
				     "%d ranks; train a smaller model",
				     segment, node->size);
	}
	for (int rank = 0; rank < node->size; rank++) {
		MPI_Aint size;
		int unit;

		MPI_Win_shared_query(node->window, rank, &size, &unit, &base);
		/* Equally far from a page's begin in all processes. */
		base = (char *)base + -(uintptr_t)base % LINE;
		node->counters[rank] = base;
		node->copy[rank] = (float *)(node->counters[rank] + COUNTS);
	}
	return 0;
}

/* Touch the memory by a call that fails where there is none. */
static int touch(void *memory, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t skew = (uintptr_t)memory % page;

	if (madvise((char *)memory - skew, bytes + skew,
		    MADV_POPULATE_WRITE) < 0 && errno != EINVAL)
		return -1;
#endif
	memset(memory, 0, bytes);
	return 0;
}

int node_populate(const struct node *node, size_t bytes,
		  struct ddp_error *error)
{
	if (touch(node->counters[node->rank],
		  COUNTS * sizeof(struct counter) + bytes) == 0)
		return 0;
	return no_room(node, bytes, error);
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

uint64_t node_least(const struct node *node, enum count count)
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
	if (node->window != MPI_WIN_NULL)
		MPI_Win_free(&node->window);
	MPI_Comm_free(&node->comm);
	free(node->place);
	free(node->counters);
	free(node->copy);
}
