/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/place says which GPU and CPUs a rank gets, and shows it as text. It uses
 * lib/util and lib/layout, and no environment, file or global state. Read this
 * header first, then report.h.
 *
 * Placement on one node: which GPU each rank has, in which order it sees the
 * others, and on which CPUs it runs, with the reasons.
 *
 * GPUs. L ranks that see the same G GPUs divide them:
 *   L = G	one each.
 *   L < G	groups of neighbours in the order given, G/L in each; if L does
 *		not divide G, the first G mod L groups have one more.
 *   L > G	refused, unless sharing is allowed: then L/G ranks have the same
 *		GPU, and L mod G of the GPUs (the first, if all is equal) one
 *		rank more.
 * Which rank has which is chosen so that the sum of distances between the CPUs
 * that Slurm gave the ranks and the GPUs is the least (ddp_assign). The
 * distance of a rank and a GPU is
 *   0	if some of its CPUs are in the GPU's locality,
 *   1	if none is, but some are of the same package,
 *   2	otherwise.
 * Among answers with the same sum, the one wins that has more CPUs at those
 * distances, summed over the ranks; then the lowest ranks have the first GPUs.
 * (Distances are levels of hwloc's tree, not the firmware's latency matrix:
 * every node has them, and they agree with the matrix where that says
 * anything.)
 *
 * Ranks that see different GPUs, because Slurm has cut the view for each task,
 * divide them among those that see the same ones. Where views overlap without
 * being equal, each rank keeps its own whole.
 *
 * CPUs. Each rank wants those of Slurm's mask that are at the least distance
 * from its GPUs; all of the mask if it has no GPU, or one whose locality is
 * unknown. A rank that would keep one of eight cores is better off with all of
 * them. So it wants the CPUs of the next distance too if the near ones alone
 * come to less than half of its even share of the mask, each CPU divided by
 * the ranks that could want it. What several ranks want is dealt out evenly in
 * whole cores (ddp_split), neighbours to neighbours, so that ranks that want
 * all CPUs are spread over the NUMA nodes. Ranks that get no core of their own
 * then want their whole mask. With fewer cores than ranks, threads of cores
 * are dealt out; with fewer threads than ranks, these are shared.
 * The answer is within the mask and never empty.
 */
#ifndef DDP_PLACE_PLACEMENT_H
#define DDP_PLACE_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "place/visible_gpus.h"
#include "place/machine.h"
#include "util/error.h"

enum {
	DDP_PLACEMENT_MAX = 4096,	/* ranks of a node */
	DDP_SHARE_MAX = 256		/* ranks that share GPUs */
};

/* --ddp-gpus= */
enum ddp_gpus_policy {
	DDP_GPUS_ALL,		/* a rank sees all; its own is at its local
				 * rank */
	DDP_GPUS_OWN,		/* it sees its own only */
	DDP_GPUS_SHARE,		/* as ALL, and several may have the same */
	DDP_GPUS_OFF		/* left alone: ranks count as having none */
};

/* --ddp-cpus= */
enum ddp_cpus_policy {
	DDP_CPUS_NEAR,
	DDP_CPUS_SPREAD,	/* as if no rank had a GPU */
	DDP_CPUS_OFF		/* as Slurm gave them */
};

/* The words of both, NULL-terminated, in the order of the enums ("all" is the
 * default of --ddp-gpus and may be written). */
extern const char *const ddp_gpus_words[];
extern const char *const ddp_cpus_words[];

/*
 * The facts that all tasks of the node must tell, by local rank: the mask that
 * the kernel has in task_init, when task/affinity has set it; and the GPUs that
 * they see, by ddp_gpus_resolve and ddp_views_join.
 */
struct ddp_placement_rank {
	struct ddp_cpuset mask;
	uint32_t gpu_count;
	const uint32_t *gpus;		/* [gpu_count] in params.gpus.gpus, in
					 * the order that the task sees */
};

struct ddp_placement_params {
	const struct ddp_machine *machine;
	const struct ddp_view *gpus;	/* of the whole step on this node; their
					 * gpu is in machine->gpus or NONE */
	uint32_t rank_count;		/* 1 to DDP_PLACEMENT_MAX */
	const struct ddp_placement_rank *ranks;
	enum ddp_gpus_policy gpus_policy;
	enum ddp_cpus_policy cpus_policy;
	bool cpus_bound;		/* the user gave --cpu-bind: CPUs stay
					 * as they are */
};

enum {
	DDP_WHY_MAX = 4,
	DDP_WHY_SIZE = 80
};

/* A rank's placement. Plain data, for shared memory. */
struct ddp_placement {
	uint32_t gpu_count;		/* its own */
	uint32_t gpus[DDP_GPU_MAX];	/* in params.gpus.gpus */
	uint32_t visible_count;		/* 0: leave the variable alone */
	uint32_t visible[DDP_GPU_MAX];	/* what it must see, in this order */
	bool local_rank_is_device;	/* visible[local rank] is gpus[0]; if
					 * false, and it has a GPU, its device
					 * is 0 */
	struct ddp_cpuset cpus;		/* to run on; the mask where nothing is
					 * to be changed */
	int32_t memory_numa;		/* where memory is preferred; -1: leave
					 * the kernel's policy, which is local
					 * to the thread */
	uint32_t why_count;
	char why[DDP_WHY_MAX][DDP_WHY_SIZE];
};

struct ddp_placements;

/*
 * Place the ranks of a node. Nothing of params is kept; the answer never
 * changes, is the same for the same params on every machine, and is the
 * caller's to destroy. NULL if there are more ranks than GPUs and sharing is
 * not allowed, if a mask is empty or has no CPU of the machine's. NULL also if
 * an index is out of range, or if memory is short. CPUs of a mask that the
 * machine does not have are left out, and the reasons say so.
 */
struct ddp_placements *
ddp_placement_create(const struct ddp_placement_params *params,
		     struct ddp_error *error);
void ddp_placement_destroy(struct ddp_placements *placements);	/* or NULL */

/* The rank's placement; borrowed; NULL out of range. */
const struct ddp_placement *
ddp_placement_get(const struct ddp_placements *placements, uint32_t local_rank);

/*
 * The places of the rank's own GPUs among those that it sees: "0" or "0,3"; ""
 * if it has none.
 */
enum { DDP_POSITIONS_SIZE = 3 * DDP_GPU_MAX + 1 };
void ddp_placement_positions(const struct ddp_placement *placement,
			     char out[DDP_POSITIONS_SIZE]);

#endif
