/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out from what launchers say which rank is on which node. */
#define _GNU_SOURCE
#include "job/launch.h"

#include <stdlib.h>
#include <string.h>

#include "layout/tasks.h"
#include "util/scan.h"

/* A rank and the name of its host, for sorting. */
struct named {
	const char *name;
	uint32_t rank;
};

int ddp_launch_is_alone(struct ddp_error *error)
{
	static const struct {
		const char *variable, *remedy;
	} launchers[] = {
		{ "SLURM_STEP_NUM_TASKS",
		  "start it with srun --mpi=pmix or srun --ddp" },
		{ "OMPI_COMM_WORLD_SIZE",
		  "use an mpirun that was built with PMIx" },
		{ "PMI_SIZE", "start it with a launcher that has PMIx, such "
		  "as srun --mpi=pmix" },
	};
	uint64_t tasks;
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		tasks = 0;
		ddp_scan_variable(launchers[i].variable, 0, UINT32_MAX, &tasks);
		if (tasks > 1)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"this is one of %llu tasks (%s), which "
				"cannot find each other without PMIx: %s",
				(unsigned long long)tasks,
				launchers[i].variable, launchers[i].remedy);
	}
	return 0;
}

/* The layout of ranks, each on the host that rank_hosts gives. */
static struct ddp_layout *create_layout(const struct ddp_hostlist *hosts,
					const uint32_t *rank_hosts,
					uint32_t ranks, struct ddp_error *error)
{
	struct ddp_layout_params params = {
		.hosts = hosts,
		.distribution = DDP_DISTRIBUTION_ARBITRARY,
		.rank_hosts = rank_hosts,
	};
	uint32_t *tasks = calloc(ddp_hostlist_count(hosts), sizeof(*tasks));
	struct ddp_layout *layout;
	uint32_t rank;

	if (!tasks) {
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a job of %u ranks", ranks);
		return NULL;
	}
	for (rank = 0; rank < ranks; rank++)
		tasks[rank_hosts[rank]]++;
	params.tasks = tasks;
	layout = ddp_layout_create(&params, error);
	free(tasks);
	return layout;
}

struct ddp_layout *ddp_launch_place_single(const char *host,
					   struct ddp_error *error)
{
	char *name = (char *)host;

	return ddp_launch_place_named(&name, 1, error);
}

struct ddp_layout *ddp_launch_place_mapped(const char *node_list,
					   const char *mapping, uint32_t ranks,
					   struct ddp_error *error)
{
	struct ddp_hostlist *hosts = ddp_hostlist_create(node_list, error);
	struct ddp_layout *layout = NULL;
	uint32_t *rank_hosts = NULL;

	if (hosts)
		rank_hosts = ddp_mapping_parse(
			mapping, ddp_hostlist_count(hosts), ranks, error);
	if (rank_hosts)
		layout = create_layout(hosts, rank_hosts, ranks, error);
	free(rank_hosts);
	ddp_hostlist_destroy(hosts);
	return layout;
}

/* The order of a host's own ranks does not matter: each just gets the host. */
static int compare_named(const void *a, const void *b)
{
	const struct named *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* Number the hosts in the order of their names. Returns the list of names, or
 * NULL if there is no memory. */
static char *number_names(char *const *names, uint32_t ranks,
			  uint32_t *rank_hosts)
{
	struct named *sorted = malloc(ranks * sizeof(*sorted));
	uint32_t host = 0, i;
	size_t size = 1;
	char *list, *end;

	for (i = 0; sorted && i < ranks; i++) {
		sorted[i] = (struct named){ names[i], i };
		size += strlen(names[i]) + 1;
	}
	list = malloc(size);
	if (!sorted || !list) {
		free(sorted);
		free(list);
		return NULL;
	}
	qsort(sorted, ranks, sizeof(*sorted), compare_named);
	end = stpcpy(list, sorted[0].name);
	for (i = 0; i < ranks; i++) {
		if (i > 0 && strcmp(sorted[i].name, sorted[i - 1].name) != 0) {
			end = stpcpy(stpcpy(end, ","), sorted[i].name);
			host++;
		}
		rank_hosts[sorted[i].rank] = host;
	}
	free(sorted);
	return list;
}

/* The names become a node list, in which some characters have a meaning. */
static int check_names(char *const *names, uint32_t ranks,
		       struct ddp_error *error)
{
	uint32_t rank;

	for (rank = 0; rank < ranks; rank++)
		if (*names[rank] == '\0' || strpbrk(names[rank], "[],"))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the host of rank %u is named '%s': a host's "
				"name is not empty and has no '[', ']' or ','",
				rank, names[rank]);
	return 0;
}

struct ddp_layout *ddp_launch_place_named(char *const *names, uint32_t ranks,
					  struct ddp_error *error)
{
	uint32_t *rank_hosts;
	struct ddp_hostlist *hosts = NULL;
	struct ddp_layout *layout = NULL;
	char *list;

	if (check_names(names, ranks, error) < 0)
		return NULL;
	rank_hosts = malloc(ranks * sizeof(*rank_hosts));
	list = !rank_hosts ? NULL : number_names(names, ranks, rank_hosts);
	if (!list)
		ddp_error_set(error, DDP_ERROR_SYSTEM,
			      "out of memory for a job of %u ranks", ranks);
	else
		hosts = ddp_hostlist_create(list, error);
	if (hosts)
		layout = create_layout(hosts, rank_hosts, ranks, error);
	ddp_hostlist_destroy(hosts);
	free(rank_hosts);
	free(list);
	return layout;
}
