/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets the tasks of a node choose together, because which rank gets which GPU
 * depends on the CPUs that Slurm gave to each of them. Each says what it was
 * given, and one of them chooses for all.
 */
#ifndef DDP_STEPD_NODE_H
#define DDP_STEPD_NODE_H

#include <stdbool.h>

#include "stepd/task.h"
#include "util/error.h"

/*
 * Chooses the GPUs and CPUs of each task together with the node's other tasks.
 * Fills in placement and positions, and in vars what tells the program of them
 * and of the agent's files. Returns 0; -1 with what this task has found; 1 if
 * another task has found what ends them all, and says it.
 */
int ddp_node_join(struct ddp_task *task, struct ddp_error *error);

/*
 * Called in a task that ends. The others then do not wait for it, and the agent
 * tells the supervisor why. Returns true if this task is the first that ends
 * so, and must print why. Where the tasks share nothing it returns alone.
 */
bool ddp_node_fail(const char *why, bool alone);

/*
 * This task ends as another one of the node has failed, which has said why: for
 * the agent, which may see this one end first, it is the reason for both.
 */
void ddp_node_leave(void);

#endif
