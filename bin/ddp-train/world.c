/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdlib.h>

#include "collective.h"
#include "config.h"
#include "layout/error.h"
#include "world.h"

/* What srun --ddp said; -1 where it said nothing. */
struct environment {
	int rank, size;
};

/* Whether a launcher that MPI_Init understands started this process. */
static bool launched(void)
{
	return getenv("PMIX_NAMESPACE") || getenv("PMI_RANK") ||
	       getenv("OMPI_COMM_WORLD_SIZE");
}

static int get_number(const char *name, uint64_t min, int *number,
		      struct ddp_error *error)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text)
		return 0;
	if (number_parse(text, min, INT_MAX, &value) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "the variable "
				     "%s is '%s', not a whole number from %d; "
				     "start every rank by one srun --ddp",
				     name, text, (int)min);
	*number = (int)value;
	return 0;
}

static const struct collective_table *choose(enum backend backend, int size,
					     struct ddp_error *error)
{
	const char *tasks = getenv("SLURM_STEP_NUM_TASKS");

	if (backend == BACKEND_AUTO && size < 1 && !launched() && tasks &&
	    strtol(tasks, NULL, 10) > 1) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "this is one of %s "
			      "tasks of a Slurm step that know nothing of each "
			      "other; use srun --ddp", tasks);
		return NULL;
	}
	if (backend == BACKEND_AUTO)
		backend = size > 1 || launched() ? BACKEND_MPI : BACKEND_SELF;
	if (backend == BACKEND_SELF) {
		const char *others = getenv("OMPI_COMM_WORLD_SIZE");

		if (size < 1 && others)
			size = (int)strtol(others, NULL, 10);
		if (size <= 1)
			return &collective_self;
		ddp_error_set(error, DDP_ERROR_SYSTEM, "there are %d ranks "
			      "but --backend self trains one process alone; "
			      "use --backend mpi", size);
		return NULL;
	}
#ifdef HAVE_MPI
	/* Without a launcher MPI_Init would make a world of each process. */
	if (size <= 1 || launched())
		return &collective_mpi;
	ddp_error_set(error, DDP_ERROR_SYSTEM, "WORLD_SIZE is %d but no MPI "
		      "launcher started this process; use srun --ddp "
		      "--mpi=pmix", size);
#else
	ddp_error_set(error, DDP_ERROR_SYSTEM, "this ddp-train was built "
		      "without MPI and cannot meet other ranks; build it with "
		      "./configure --with-mpi (--backend self trains one "
		      "process alone)");
#endif
	return NULL;
}

static int compare(const struct collective *collective,
		   const struct environment *said, struct ddp_error *error)
{
	const char *name = collective->table->name;

	if (said->size >= 0 && said->size != collective->size)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "WORLD_SIZE is "
				     "%d but backend %s sees a world of %d; "
				     "start the ranks with srun --ddp "
				     "--mpi=pmix", said->size, name,
				     collective->size);
	if (said->rank >= 0 && said->rank != collective->rank)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "RANK is %d but "
				     "the rank in backend %s is %d; start the "
				     "ranks with srun --ddp, or unset RANK",
				     said->rank, name, collective->rank);
	return 0;
}

/*
 * Whether this is one of several Slurm tasks that failed to become one world:
 * all of them see it, and the first task says it.
 */
static bool has_speaker(const struct collective *collective,
			const struct environment *said)
{
	const char *task = getenv("SLURM_PROCID");
	uint64_t number;

	return (said->size > 1 || !collective->table) &&
	       collective->size == 1 && task &&
	       number_parse(task, 1, INT_MAX, &number) == 0;
}

int world_open(struct collective *collective, enum backend backend,
	       bool *quiet, struct ddp_error *error)
{
	struct environment said = { -1, -1 };
	bool bad = get_number("RANK", 0, &said.rank, error) < 0 ||
		   get_number("WORLD_SIZE", 1, &said.size, error) < 0;

	*collective = (struct collective){ .size = 1, .nodes = 1 };
	collective->table = choose(backend, said.size, error);
	if (collective->table &&
	    collective->table->open(collective, error) < 0)
		collective->table = NULL;
	*quiet = has_speaker(collective, &said);
	if (bad || !collective->table)
		return -1;
	return compare(collective, &said, error);
}
