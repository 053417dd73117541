/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI as a backend. Its own failures end all ranks: MPI_ERRORS_ARE_FATAL. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "tool/mpi_private.h"
#include "tool/ranks.h"
#include "util/text.h"

static int my_rank;
static size_t neighbours = 1;	/* ranks of this node */

static int mpi_open(int *rank, int *size, struct ddp_error *error)
{
	struct tool_promise promise;

	tool_promise_read(&promise, NULL);
	if (tool_promise_check_mpi(&promise, error) < 0 ||
	    tool_mpi_open(error) < 0)
		return -1;
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, size);
	my_rank = *rank;
	return 0;
}

static int mpi_prepare(int local_rank, int local_size, bool share,
		       char *device, size_t size, struct ddp_error *error)
{
	(void)local_rank;
	(void)share;
	(void)error;
	neighbours = (size_t)local_size;
	snprintf(device, size, "cpu");
	return 0;
}

static int mpi_connect(struct ddp_error *error)
{
	(void)error;
	return 0;
}

/* The files are hidden here, not in mpi_open, whose time is measured. */
static void mpi_gather(const void *mine, void *all, size_t size)
{
	tool_mpi_hide();
	MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE,
		      MPI_COMM_WORLD);
}

static void mpi_barrier(void)
{
	tool_mpi_hide();
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The memory that the node has left, in bytes; much if it does not say. */
static size_t available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	size_t kilobytes = SIZE_MAX >> 10;
	char line[128];

	while (file && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %zu kB", &kilobytes) == 1)
			break;
	if (file)
		fclose(file);
	return kilobytes << 10;
}

/* The kernel promises more memory than it has, and kills who uses it. */
static void *mpi_reserve(size_t size, struct ddp_error *error)
{
	size_t most = available() / neighbours;
	void *buffer = size <= most ? malloc(size) : NULL;

	if (!buffer)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "the buffers take %zu "
			      "bytes, this node has %zu for each of its %zu "
			      "ranks; choose a smaller --maxbytes", size, most,
			      neighbours);
	return buffer;
}

static void mpi_put(void *buffer, const void *from, size_t size)
{
	memcpy(buffer, from, size);
}

static void mpi_get(void *to, const void *buffer, size_t size)
{
	memcpy(to, buffer, size);
}

static MPI_Datatype datatype(enum type type)
{
	switch (type) {
	case INT8: return MPI_INT8_T;
	case UINT8: return MPI_UINT8_T;
	case INT32: return MPI_INT32_T;
	case UINT32: return MPI_UINT32_T;
	case INT64: return MPI_INT64_T;
	case UINT64: return MPI_UINT64_T;
	case FLOAT: return MPI_FLOAT;
	case DOUBLE: return MPI_DOUBLE;
	case HALF: case BFLOAT16: break;	/* options_parse refuses */
	}
	return MPI_DATATYPE_NULL;
}

static MPI_Op operation(enum redop redop)
{
	switch (redop) {
	case SUM: return MPI_SUM;
	case PROD: return MPI_PROD;
	case MAX: return MPI_MAX;
	case MIN: break;
	}
	return MPI_MIN;
}

/*
 * MPI's broadcast is always in place. NCCL's need not be: out of place, the
 * root copies to its own second buffer, and the copy is measured too.
 */
static void broadcast(const struct call *call, MPI_Datatype type)
{
	if (call->send != call->receive && my_rank == call->root)
		memcpy(call->receive, call->send,
		       call->count * type_width(call->type));
	MPI_Bcast(call->receive, (int)call->count, type, call->root,
		  MPI_COMM_WORLD);
}

static void mpi_run(const struct call *call)
{
	int count = (int)call->count;
	MPI_Datatype type = datatype(call->type);
	MPI_Op op = operation(call->redop);
	const void *send = call->send == call->receive ? MPI_IN_PLACE :
		call->send;

	switch (call->collective) {
	case ALL_REDUCE:
		MPI_Allreduce(send, call->receive, count, type, op,
			      MPI_COMM_WORLD);
		return;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(send, call->receive, count, type, op,
					 MPI_COMM_WORLD);
		return;
	case ALL_GATHER:
		MPI_Allgather(send, count, type, call->receive, count, type,
			      MPI_COMM_WORLD);
		return;
	case BROADCAST:
		broadcast(call, type);
		return;
	}
}

static void mpi_exchange(int peer, const void *send, void *receive,
			 size_t size)
{
	MPI_Sendrecv(send, (int)size, MPI_BYTE, peer, 0, receive, (int)size,
		     MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void mpi_wait(void)
{
}

/* Open MPI: "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." */
static void mpi_describe(char *text, size_t size)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;

	MPI_Get_library_version(version, &length);
	version[strcspn(version, ",\n")] = '\0';
	snprintf(text, size, "%s", version);
}

static void mpi_close(void)
{
	tool_mpi_close();
}

static void mpi_abort(const char *sentence)
{
	char host[64] = "", line[640];

	gethostname(host, sizeof(host) - 1);
	snprintf(line, sizeof(line), "rank %d on %s: %s", my_rank, host,
		 sentence);
	tool_mpi_abort("ddp-bench", ddp_text_quote(line));
}

const struct backend backend_mpi = {
	.name = "mpi",
	.scatters_to_start = true,
	.count_max = INT_MAX,
	.open = mpi_open,
	.prepare = mpi_prepare,
	.connect = mpi_connect,
	.gather = mpi_gather,
	.barrier = mpi_barrier,
	.reserve = mpi_reserve,
	.release = free,
	.put = mpi_put,
	.get = mpi_get,
	.run = mpi_run,
	.exchange = mpi_exchange,
	.wait = mpi_wait,
	.describe = mpi_describe,
	.close = mpi_close,
	.abort = mpi_abort
};
