/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tasks of a node choose together, as which rank has which GPU depends
 * on the CPUs that Slurm gave to each of them; see ddp_task_join of task.h.
 */
#ifndef DDP_PLUGIN_NODE_H
#define DDP_PLUGIN_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/error.h"
#include "layout/placement.h"
#include "layout/views.h"
#include "task.h"

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

/*
 * In slurmstepd, before it forks tasks: let this many of them join. What goes
 * wrong here is what each of them then finds.
 */
void ddp_node_prepare(uint32_t tasks);

/*
 * In a task that ends: its siblings shall not wait for it. Whether it is the
 * first that ends so, and shall say why; alone, where they share nothing.
 */
bool ddp_node_fail(bool alone);

/*
 * choose.c: answer what all slots say; print the warnings and the rows that
 * are due. task is the one that does it, whose layout knows the ranks.
 */
int ddp_choose(const struct ddp_task *task, const struct ddp_machine *machine,
	       struct ddp_slot *slots, uint32_t count,
	       struct ddp_error *error);

#endif
