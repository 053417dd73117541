/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds how near CPUs are to a GPU: the distances of placement.h. Here are also
 * the parts of placement, divide.c and bind.c. Private to placement.
 */
#ifndef DDP_PLACE_NEAR_H
#define DDP_PLACE_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "place/machine.h"
#include "place/placement.h"

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

/*
 * divide.c: choose the GPUs of all ranks and their order, as placement.h has
 * it. near is of params->gpus. Fills in all but cpus and memory_numa and adds
 * the reasons. Returns 0, or -1 if there are too few GPUs or if memory is
 * short.
 */
int ddp_divide(const struct ddp_placement_params *params,
	       const struct ddp_near *near, struct ddp_placement *placements,
	       struct ddp_error *error);

/*
 * bind.c: choose the CPUs of all ranks, whose own GPUs have been chosen. Fills
 * in cpus and memory_numa and adds the reasons. Returns 0, or -1 if memory is
 * short.
 */
int ddp_bind(const struct ddp_placement_params *params,
	     const struct ddp_near *near, struct ddp_placement *placements,
	     struct ddp_error *error);

#endif
