/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a placement, which near_cpus.c calls: divide_gpus.c chooses GPUs,
 * and split_cpus.c deals out CPUs. Private to them, and to tests.
 */
#ifndef DDP_PLACE_STEPS_H
#define DDP_PLACE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "place/machine.h"
#include "place/placement.h"
#include "util/error.h"

/* ---- near_cpus.c: how near CPUs are to a GPU, and the reasons */

enum { DDP_NEAR_LEVELS = 2 };

/* The CPUs at distance 0, and those at distance 0 or 1. */
struct ddp_near {
	bool known;			/* if not, any CPU is as near */
	struct ddp_cpuset cpus[DDP_NEAR_LEVELS];
};

/* gpu is an index into machine->gpus, or DDP_GPU_NONE. */
void ddp_near_find(const struct ddp_machine *machine, uint32_t gpu,
		   struct ddp_near *near);

/* The distance of the mask's nearest CPUs, and how many are at it. */
uint32_t ddp_near_distance(const struct ddp_near *near,
			   const struct ddp_cpuset *mask, uint32_t *count);

/* Add a reason, cut if it is too long; dropped if there are too many. */
void ddp_why_add(struct ddp_placement *placement, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- divide_gpus.c */

/*
 * Choose the GPUs of all ranks and their order, as placement.h has it. near is
 * of params->gpus. Fills in all but cpus and memory_numa and adds the reasons.
 * Returns 0, or -1 if there are too few GPUs or if memory is short.
 */
int ddp_divide(const struct ddp_placement_params *params,
	       const struct ddp_near *near, struct ddp_placement *placements,
	       struct ddp_error *error);

/*
 * The assignment problem: give each row a column of its own so that the sum
 * of costs is the least. Exact, in O(n^3) (shortest augmenting paths with
 * potentials, after Kuhn and Munkres).
 */
enum { DDP_ASSIGN_MAX = 512 };			/* rows */
#define DDP_ASSIGN_NEVER (INT64_C(1) << 40)	/* cost of a forbidden pair */

/*
 * cost is [count][count], by rows, each from 0 to below DDP_ASSIGN_NEVER, or
 * DDP_ASSIGN_NEVER itself. Writes each row's column to columns[count]. Of
 * several best answers it is always the one in which row 0 has the lowest
 * column that it has in any of them, then row 1, and so on: the same on every
 * machine, and columns[i] = i wherever all costs are equal.
 *
 * Returns 0, or -1 with columns undefined if a forbidden pair cannot be
 * avoided, if count is not 1 to DDP_ASSIGN_MAX, or if memory is short.
 */
int ddp_assign(uint32_t count, const int64_t *cost, uint32_t *columns,
	       struct ddp_error *error);

/* ---- split_cpus.c: CPUs, dealt out fairly to ranks that want the same ones */

enum ddp_split {
	DDP_SPLIT_CORES,	/* whole cores, as far as it wants them */
	DDP_SPLIT_THREADS,	/* threads: fewer cores than ranks */
	DDP_SPLIT_SHARED	/* also another rank's: fewer CPUs than ranks */
};

/*
 * Give each of count ranks some of the CPUs of want[rank], at least one.
 *
 * If every rank can have a core, no core is given to two ranks. Otherwise,
 * among the ranks that compete with one that cannot, no CPU is. Otherwise a
 * rank for which none is left shares a CPU with another.
 *
 * The smallest number that a rank gets is as high as it can be, then the second
 * smallest, and so on; the first ranks have a core more where it does not come
 * out even. Within that, ranks get what is in their like rather than what is
 * not, as far as swaps between two can bring it about; then neighbours.
 *
 * Each want must hold a CPU of the machine's; others are ignored. Writes get
 * and how of each rank. Returns 0, or -1 if memory is short.
 */
int ddp_split(const struct ddp_machine *machine, uint32_t count,
	      const struct ddp_cpuset *want, const struct ddp_cpuset *like,
	      struct ddp_cpuset *get, enum ddp_split *how,
	      struct ddp_error *error);

#endif
