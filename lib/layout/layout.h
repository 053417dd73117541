/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank's place in a job step: its host, node rank and local rank.
 *
 * A host is an entry of the step's node list. Each entry is a node of its own
 * even where a name occurs twice, as in heterogeneous steps, whose components
 * may share a machine: Slurm runs one slurmstepd, and counts local ranks,
 * for each.
 */
#ifndef DDP_LAYOUT_LAYOUT_H
#define DDP_LAYOUT_LAYOUT_H

#include <stdint.h>

#include "layout/error.h"
#include "layout/hostlist.h"
#include "layout/tasks.h"

/*
 * How ranks are dealt to hosts, given the number of tasks of each host. With a
 * topology plugin Slurm 26.05 deals block in that topology's order of hosts,
 * which only rank_hosts can tell (or CR_NO_DIST_TOPO_BLOCK prevent).
 */
enum ddp_distribution {
	DDP_DISTRIBUTION_BLOCK,		/* fill host after host */
	DDP_DISTRIBUTION_CYCLIC,	/* one at a time, skipping full hosts */
	DDP_DISTRIBUTION_PLANE,		/* plane_size at a time, likewise */
	DDP_DISTRIBUTION_ARBITRARY	/* no rule: rank_hosts says it */
};

/*
 * Read the value of SLURM_DISTRIBUTION. Only its first level, the one across
 * nodes, is kept: "cyclic:block,pack" is cyclic. Where it does not name one
 * ("*", "pack", "nopack", "", NULL) the answer is block, Slurm's default.
 * Returns 0, or -1 for a word that Slurm does not know.
 */
int ddp_distribution_parse(const char *text,
			   enum ddp_distribution *distribution,
			   struct ddp_error *error);

struct ddp_layout_params {
	const struct ddp_hostlist *hosts;
	const uint32_t *tasks;		/* tasks of each host; 0 is allowed */
	enum ddp_distribution distribution;
	uint32_t plane_size;		/* 1 and up; read for PLANE only */
	const uint32_t *rank_hosts;	/* host index of each rank, as many
					 * as tasks add up to; NULL: by the
					 * distribution, which must not be
					 * ARBITRARY then */
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
 * Place every rank. Nothing of params is kept: the caller may free all of it.
 * The answer never changes, so any number of threads may read it at once.
 * NULL if the parts disagree (rank_hosts against tasks), if there are no or
 * more than DDP_RANK_MAX ranks, or if memory is short. The caller destroys
 * it.
 *
 * Rank 0 is always on node rank 0. For block, cyclic and plane of one
 * component node_rank equals SLURM_NODEID; for arbitrary it need not.
 */
struct ddp_layout *ddp_layout_create(const struct ddp_layout_params *params,
				     struct ddp_error *error);
void ddp_layout_destroy(struct ddp_layout *layout);	/* NULL: nothing */

uint32_t ddp_layout_world_size(const struct ddp_layout *layout);

/* Hosts that run at least one rank. */
uint32_t ddp_layout_node_count(const struct ddp_layout *layout);

/* Rank 0's host; borrowed from the layout. */
const char *ddp_layout_master(const struct ddp_layout *layout);

/* Fill out for a rank below the world size. Returns 0, or -1. */
int ddp_layout_get(const struct ddp_layout *layout, uint32_t rank,
		   struct ddp_rank *out, struct ddp_error *error);

#endif
