/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures of MPI itself end the world: MPI_ERRORS_ARE_FATAL, the default. */
#include <mpi.h>

#include "comm.h"

static void mpi_open(int *rank, int *size)
{
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, size);
}

static void mpi_gather(const void *mine, void *all, size_t size)
{
	MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE,
		      MPI_COMM_WORLD);
}

static void mpi_broadcast(float *values, size_t count)
{
	MPI_Bcast(values, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void mpi_sum(float *values, size_t count)
{
	MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM,
		      MPI_COMM_WORLD);
}

static void mpi_close(void)
{
	MPI_Finalize();
}

static void mpi_abort(int status)
{
	MPI_Abort(MPI_COMM_WORLD, status);
}

const struct comm comm_mpi = {
	.name = "mpi",
	.open = mpi_open,
	.gather = mpi_gather,
	.broadcast = mpi_broadcast,
	.sum = mpi_sum,
	.close = mpi_close,
	.abort = mpi_abort
};
