/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tasks of each node, as SLURM_STEP_TASKS_PER_NODE lists them: "2(x3),1" is
 * two tasks on each of three nodes and one on a fourth.
 */
#ifndef DDP_LAYOUT_TASKS_H
#define DDP_LAYOUT_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

enum { DDP_RANK_MAX = 1 << 24 };	/* ranks in one job step */

/*
 * Write the number of tasks of each node to tasks[node_count]. The text must
 * list exactly node_count nodes, with 1 to DDP_RANK_MAX tasks in all; a node
 * may have none. Returns 0, or -1 with tasks undefined.
 */
int ddp_tasks_parse(const char *text, size_t node_count, uint32_t *tasks,
		    struct ddp_error *error);

#endif
