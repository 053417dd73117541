/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/layout says who is where: ranks on nodes, their port, and the variables of
 * a task. It uses lib/util, and no environment, file, clock or global state, as
 * do lib/place and lib/request, which stand on it. Read this header first, then
 * vars.h.
 *
 * This header: the host, node rank and local rank of every rank of a step.
 *
 * A host is an entry of the step's node list. Each entry is a node of its own,
 * even if its name occurs twice: the components of a heterogeneous step may
 * share a machine, and Slurm runs one slurmstepd, and counts local ranks, for
 * each of them.
 */
#ifndef DDP_LAYOUT_LAYOUT_H
#define DDP_LAYOUT_LAYOUT_H

#include <stdint.h>

#include "layout/hostlist.h"
#include "layout/tasks.h"
#include "util/error.h"

/*
 * The order in which ranks are given to hosts, each of which has a known number
 * of tasks. If a topology plugin is in use, block in Slurm 26.05 follows that
 * topology's order of hosts, which only rank_hosts can tell. (The option
 * CR_NO_DIST_TOPO_BLOCK of SelectTypeParameters turns that off.)
 */
enum ddp_distribution {
	DDP_DISTRIBUTION_BLOCK,		/* fill one host after another */
	DDP_DISTRIBUTION_CYCLIC,	/* one at a time, skipping full hosts */
	DDP_DISTRIBUTION_PLANE,		/* the same, plane_size at a time */
	DDP_DISTRIBUTION_ARBITRARY	/* no rule: see rank_hosts */
};

/*
 * Read the value of SLURM_DISTRIBUTION. Only its first level counts, the one
 * across nodes: "cyclic:block,pack" is cyclic. If it has none ("*", "pack",
 * "nopack", "", NULL) the answer is block, Slurm's default. Returns 0, or -1
 * for a word that Slurm does not know.
 */
int ddp_distribution_parse(const char *text,
			   enum ddp_distribution *distribution,
			   struct ddp_error *error);

struct ddp_layout_params {
	const struct ddp_hostlist *hosts;
	const uint32_t *tasks;		/* tasks of each host; 0 is allowed */
	enum ddp_distribution distribution;
	uint32_t plane_size;		/* at least 1; only PLANE reads it */
	const uint32_t *rank_hosts;	/* host index of each rank, as many
					 * as tasks add up to. NULL: follow
					 * the distribution, which must not
					 * be ARBITRARY then */
};

struct ddp_rank {
	uint32_t rank;
	uint32_t local_rank;		/* among the host's ranks, by rank */
	uint32_t local_world_size;	/* ranks of the host */
	uint32_t node_rank;		/* hosts numbered by lowest rank */
	uint32_t host_index;		/* into the host list */
	const char *host;		/* borrowed from the layout */
};

struct ddp_layout;

/*
 * Place every rank. The caller may free all of params afterwards, and destroys
 * the layout. It never changes, so any number of threads may read it at once.
 * Returns NULL if rank_hosts and tasks disagree, if there are no ranks or more
 * than DDP_RANK_MAX, or if memory is short.
 *
 * Rank 0 is always on node rank 0. With block, cyclic and plane, and one
 * component, node_rank equals SLURM_NODEID; with arbitrary it may differ.
 */
struct ddp_layout *ddp_layout_create(const struct ddp_layout_params *params,
				     struct ddp_error *error);
void ddp_layout_destroy(struct ddp_layout *layout);	/* accepts NULL */

uint32_t ddp_layout_world_size(const struct ddp_layout *layout);

/* The number of hosts that run at least one rank. */
uint32_t ddp_layout_node_count(const struct ddp_layout *layout);

/* The number of ranks of each of these hosts; 0 where it is not one number. */
uint32_t ddp_layout_ranks_per_node(const struct ddp_layout *layout);

/* Rank 0's host; borrowed from the layout. */
const char *ddp_layout_master(const struct ddp_layout *layout);

/* Fill out for a rank. Returns 0, or -1 if there is no such rank. */
int ddp_layout_get(const struct ddp_layout *layout, uint32_t rank,
		   struct ddp_rank *out, struct ddp_error *error);

#endif
