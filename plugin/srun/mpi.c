/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI type of a step, and what its fences need. */
#define _GNU_SOURCE
#include "srun/mpi.h"

#include <stdlib.h>
#include <string.h>

#include "options/plugin.h"
#include "srun/cli.h"
#include "srun/rerun.h"

void ddp_mpi_init(void)
{
	const char *mpi = getenv("SLURM_MPI_TYPE");

	ddp_srun.mpi_before = mpi ? strdup(mpi) : NULL;
}

void ddp_mpi_restore(void)
{
	if (ddp_srun.mpi_before)
		setenv("SLURM_MPI_TYPE", ddp_srun.mpi_before, 1);
	else
		unsetenv("SLURM_MPI_TYPE");
}

/*
 * srun tells its tasks the MPI type even if nobody chose it: the "none" that
 * is in the environment of a step, such as salloc's shell, is no choice.
 */
static bool was_chosen(void)
{
	const char *mpi = ddp_cli_get("mpi"), *before = ddp_srun.mpi_before;

	return mpi && !(strcmp(mpi, "none") == 0 && before &&
			strcmp(before, "none") == 0 &&
			getenv("SLURM_STEP_ID"));
}

void ddp_mpi_note(void)
{
	ddp_srun.mpi_given = ddp_cli_isset("mpi");
}

/* The variable is what srun tells its tasks. */
const char *ddp_mpi_type(void)
{
	const char *mpi = ddp_cli_get_default("mpi");

	return mpi ? mpi : getenv("SLURM_MPI_TYPE");
}

bool ddp_mpi_is_pmix(void)
{
	const char *mpi = ddp_cli_get_default("mpi");

	return mpi && strncmp(mpi, "pmix", 4) == 0;
}

/*
 * A PMIx fence without data does not make nodes wait for each other by default.
 * Open MPI needs that at the end of MPI_Init, and crashes now and then without
 * it.
 */
bool ddp_mpi_fill(void)
{
	bool missing = !ddp_plugin.mpi_keep && !was_chosen() &&
		       !ddp_mpi_is_pmix() && ddp_cli_has_mpi("pmix");
	bool fence = (missing || ddp_mpi_is_pmix()) &&
		     !getenv("SLURM_PMIX_FENCE");

	if (missing)
		ddp_rerun_add("SLURM_MPI_TYPE", "pmix");
	if (fence)
		ddp_rerun_add("SLURM_PMIX_FENCE", "ring");
	return missing || fence;
}
