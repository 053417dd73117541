/* SPDX-License-Identifier: BSD-3-Clause */
/* The world that the launcher promised, beside the one that was found. */
#include <limits.h>
#include <stdlib.h>

#include "tool/promise.h"
#include "util/scan.h"

static int read_variable(const char *name, uint64_t min, int *number,
			 struct ddp_error *error)
{
	uint64_t value;
	int rc = ddp_scan_variable(name, min, INT_MAX, &value);

	*number = rc == 0 ? (int)value : -1;
	if (rc < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "the variable "
				     "%s is '%s', not a whole number from %d; "
				     "start every rank by one srun --ddp",
				     name, getenv(name), (int)min);
	return 0;
}

int tool_promise_read(struct tool_promise *promise, struct ddp_error *error)
{
	int bad = read_variable("RANK", 0, &promise->rank, error);

	/* The first error is the one to report. */
	bad |= read_variable("WORLD_SIZE", 1, &promise->size,
			     bad ? NULL : error);
	read_variable("SLURM_STEP_NUM_TASKS", 1, &promise->tasks, NULL);
	promise->mpi = getenv("PMIX_NAMESPACE") || getenv("PMI_RANK") ||
		       getenv("OMPI_COMM_WORLD_SIZE");
	return bad;
}

bool tool_promise_is_first(void)
{
	static const char *const names[] = {
		"SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"
	};
	int task = -1;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && task < 0; i++)
		read_variable(names[i], 0, &task, NULL);
	return task <= 0;
}

int tool_promise_check_mpi(const struct tool_promise *promise,
			   struct ddp_error *error)
{
	if (promise->mpi)
		return 0;
	if (promise->size > 1)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "WORLD_SIZE is "
				     "%d but no MPI launcher started this "
				     "process; use srun --ddp --mpi=pmix",
				     promise->size);
	if (promise->size < 0 && promise->tasks > 1)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "this is one of "
				     "%d tasks of a Slurm step that know "
				     "nothing of each other; use srun --ddp "
				     "--mpi=pmix", promise->tasks);
	return 0;
}

int tool_promise_compare(const struct tool_promise *promise,
			 const char *backend, int rank, int size,
			 struct ddp_error *error)
{
	if (promise->size >= 0 && promise->size != size)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "WORLD_SIZE is "
				     "%d but backend %s sees a world of %d; "
				     "start the ranks with srun --ddp "
				     "--mpi=pmix", promise->size, backend,
				     size);
	if (promise->rank >= 0 && promise->rank != rank)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "RANK is %d but "
				     "the rank in backend %s is %d; start the "
				     "ranks with srun --ddp, or unset RANK",
				     promise->rank, backend, rank);
	return 0;
}
