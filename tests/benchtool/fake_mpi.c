/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broken MPI, for tests: preloaded, it adds 1 to the last element of the
 * result of the function that $FAKE_MPI_WRONG names, on rank 1, or on the ranks
 * whose digits are in $FAKE_MPI_RANKS; in each call, or in the call of this
 * function that $FAKE_MPI_CALL counts. FAKE_MPI_SLEEP=RANK:MS: this rank sleeps
 * at the end of each all-reduce.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns 1 if this call of the function must give this rank a wrong result. */
static int is_wrong(const char *name, int rank)
{
	static int calls;
	const char *wrong = getenv("FAKE_MPI_WRONG");
	const char *ranks = getenv("FAKE_MPI_RANKS");
	const char *call = getenv("FAKE_MPI_CALL");

	if (!wrong || strcmp(wrong, name) != 0)
		return 0;
	calls++;
	return strchr(ranks ? ranks : "1", '0' + rank) &&
		(!call || atoi(call) == calls);
}

static void spoil(const char *name, void *result, int count, MPI_Datatype type)
{
	bool known = type == MPI_FLOAT || type == MPI_INT32_T ||
		type == MPI_UINT8_T;
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* Other types are what ddp-bench's ranks tell each other. */
	if (!known || !is_wrong(name, rank) || count < 1)
		return;
	if (type == MPI_FLOAT)
		((float *)result)[count - 1]++;
	else if (type == MPI_INT32_T)
		((int *)result)[count - 1]++;
	else
		((unsigned char *)result)[count - 1]++;
}

static void dawdle(void)
{
	const char *wanted = getenv("FAKE_MPI_SLEEP");
	unsigned int ms;
	int rank, slow;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (wanted && sscanf(wanted, "%d:%u", &slow, &ms) == 2 && slow == rank)
		usleep(ms * 1000);
}

int MPI_Allreduce(const void *send, void *receive, int count,
		  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rc = PMPI_Allreduce(send, receive, count, type, op, comm);

	spoil("Allreduce", receive, count, type);
	dawdle();
	return rc;
}

int MPI_Reduce_scatter_block(const void *send, void *receive, int count,
			     MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rc = PMPI_Reduce_scatter_block(send, receive, count, type, op,
					   comm);

	spoil("Reduce_scatter_block", receive, count, type);
	return rc;
}

int MPI_Allgather(const void *send, int count, MPI_Datatype type,
		  void *receive, int receive_count, MPI_Datatype receive_type,
		  MPI_Comm comm)
{
	int rc = PMPI_Allgather(send, count, type, receive, receive_count,
				receive_type, comm);
	int size;

	PMPI_Comm_size(comm, &size);
	spoil("Allgather", receive, receive_count * size, receive_type);
	return rc;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root,
	      MPI_Comm comm)
{
	int rc = PMPI_Bcast(buffer, count, type, root, comm);

	spoil("Bcast", buffer, count, type);
	return rc;
}
