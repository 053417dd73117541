/* SPDX-License-Identifier: BSD-3-Clause */
/* The world that was promised beside the one found, and how its ranks agree. */
#define _GNU_SOURCE
#include "tool/ranks.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/scan.h"

/* ---- the world that the launcher promised */

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

/* ---- agreement on an error, and on the options */

/* A rank's report to the others. */
struct report {
	char host[64];
	struct ddp_error error;
	char settings[TOOL_SETTINGS_SIZE];
};

static bool is_same(const struct ddp_error *a, const struct ddp_error *b)
{
	return a->code == b->code && strcmp(a->text, b->text) == 0;
}

/* The first rank's error; without its name where all ranks say the same. */
static int find_error(const struct report *all, int size,
		      struct ddp_error *error)
{
	int first = 0, same = 0;

	while (first < size && all[first].error.code == DDP_ERROR_NONE)
		first++;
	if (first == size)
		return 0;
	for (int rank = 0; rank < size; rank++)
		same += is_same(&all[rank].error, &all[first].error);
	if (same < size)
		return ddp_error_set(error, all[first].error.code,
				     "rank %d on %s: %s", first,
				     all[first].host, all[first].error.text);
	if (error)
		*error = all[first].error;
	return -1;
}

/* The first rank whose settings differ from rank 0's, and the first line. */
static int compare_settings(const struct report *all, int size,
			    struct ddp_error *error)
{
	for (int rank = 1; rank < size; rank++) {
		const char *had = all[rank].settings;
		const char *wanted = all[0].settings;
		size_t i = 0;

		if (strcmp(had, wanted) == 0)
			continue;
		while (had[i] == wanted[i])
			i++;
		while (i > 0 && had[i - 1] != '\n')
			i--;
		had += i;
		wanted += i;
		return ddp_error_set(error, DDP_ERROR_PEER, "rank %d on %s "
				     "has %.*s, but rank 0 has %.*s; start "
				     "every rank with the same options and "
				     "data", rank, all[rank].host,
				     (int)strcspn(had, "\n"), had,
				     (int)strcspn(wanted, "\n"), wanted);
	}
	return 0;
}

int tool_agree(const struct tool_ranks *ranks, const char *settings,
	       const struct ddp_error *mine, struct ddp_error *error)
{
	struct report *all = calloc((size_t)ranks->size, sizeof(*all));
	struct report own = { .error = *mine };
	int result;

	/* The others wait for this rank, and could not be told otherwise. */
	if (!all || strlen(settings) >= sizeof(own.settings))
		ranks->abort(ranks->context, "no memory for what the ranks "
			     "tell each other");
	gethostname(own.host, sizeof(own.host) - 1);
	strcpy(own.settings, settings);
	ranks->exchange(ranks->context, &own, all, sizeof(own));
	result = find_error(all, ranks->size, error);
	if (result == 0)
		result = compare_settings(all, ranks->size, error);
	free(all);
	return result;
}
