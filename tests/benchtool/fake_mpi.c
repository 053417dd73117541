/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broken MPI, for tests: preloaded, it adds 1 to the last float or int of
 * the result of the function that $FAKE_MPI_WRONG names, on rank 1.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void spoil(const char *name, void *result, int count, MPI_Datatype type)
{
	const char *wrong = getenv("FAKE_MPI_WRONG");
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!wrong || strcmp(wrong, name) != 0 || rank != 1 || count < 1)
		return;
	if (type == MPI_FLOAT)
		((float *)result)[count - 1]++;
	else if (type == MPI_INT32_T)
		((int *)result)[count - 1]++;
}

int MPI_Allreduce(const void *send, void *receive, int count,
		  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rc = PMPI_Allreduce(send, receive, count, type, op, comm);

	spoil("Allreduce", receive, count, type);
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
