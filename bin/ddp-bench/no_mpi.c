/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces mpi.c in a build without MPI. */
#include "backend.h"

static int no_open(int *rank, int *size, struct ddp_error *error)
{
	(void)rank;
	(void)size;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "this ddp-bench was "
			     "built without MPI; build it with ./configure "
			     "--with-mpi");
}

const struct backend backend_mpi = { .name = "mpi", .open = no_open };
