/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks of each node, as SLURM_STEP_TASKS_PER_NODE writes them: "2(x3),1" is
 * two tasks on each of three nodes, then one on a fourth.
 */
#ifndef DDP_LAYOUT_TASKS_H
#define DDP_LAYOUT_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"

#define DDP_RANK_MAX (1u << 24)		/* ranks in one job step */

/*
 * Write one count a node to tasks[node_count]. The text must speak of exactly
 * node_count nodes and of 1 to DDP_RANK_MAX tasks in all; a single node may
 * have none. Returns 0, or -1 with tasks undefined.
 */
int ddp_tasks_parse(const char *text, size_t node_count, uint32_t *tasks,
		    struct ddp_error *error);

#endif
