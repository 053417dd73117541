/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tasks of a node choose together, because which rank gets which GPU
 * depends on the CPUs that Slurm gave to each of them: each says what it was
 * given, and one of them chooses for all.
 */
#ifndef DDP_STEPD_NODE_H
#define DDP_STEPD_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"
#include "layout/machine.h"
#include "layout/placement.h"
#include "layout/views.h"
#include "stepd/task.h"

enum {
	DDP_VISIBLE_SIZE = 32 + DDP_VIEWS_TEXT_SIZE,
	DDP_RECORD_SIZE = 96 << 10	/* more than a record of 64 GPUs has */
};

/* One task, by local rank, in shared memory: what it says, and its answer. */
struct ddp_slot {
	uint32_t rank;
	struct ddp_cpuset mask;
	struct ddp_view view;
	struct ddp_placement placement;
	char visible[DDP_VISIBLE_SIZE];	/* "VARIABLE=value" that orders what
					 * it sees; "": none */
	char record[DDP_RECORD_SIZE];	/* its row, as DDP_PLACEMENT has it */
};

/* What they share. Of the machine, all that GPUs' names are resolved by. */
struct ddp_node {
	uint32_t gpu_count, part_count;
	struct ddp_gpu gpus[DDP_GPU_MAX];
	struct ddp_gpu_part parts[DDP_GPU_MAX * DDP_GPU_MAX];
	struct ddp_slot slots[];
};

/* Its size for this many tasks. */
static inline size_t ddp_node_size(uint32_t tasks)
{
	return sizeof(struct ddp_node) + tasks * sizeof(struct ddp_slot);
}

/*
 * With the node's other tasks, choose the GPUs and CPUs of each; fills in
 * placement, record and visible. Returns 0; -1 with what this task has found;
 * 1 if another task has found what ends them all, and says it.
 */
int ddp_node_join(struct ddp_task *task, struct ddp_error *error);

/*
 * In a task that ends: the others must not wait for it. Returns whether it is
 * the first that ends so, and must say why; alone, where they share nothing.
 */
bool ddp_node_fail(bool alone);

#endif
