/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_MPI_H
#define DDP_SRUN_MPI_H

#include <stdbool.h>

/*
 * Init is called before srun writes its own choice of an MPI type down; restore
 * undoes that choice.
 */
void ddp_mpi_init(void);
void ddp_mpi_restore(void);

/*
 * The MPI type when the step exists, and whether the user gave it: note whether
 * before srun launches the step, because it may forget a "none" then.
 */
void ddp_mpi_note(void);
const char *ddp_mpi_type(void);

/*
 * Returns true if the MPI type is a pmix; a site may name a version: pmix_v4.
 */
bool ddp_mpi_is_pmix(void);

/* Fill in the MPI type and what PMIx needs; whether there was anything. */
bool ddp_mpi_fill(void);

#endif
