/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tasks of a node choose together, because which rank gets which GPU
 * depends on the CPUs that Slurm gave to each of them: each says what it was
 * given, and one of them chooses for all.
 */
#ifndef DDP_STEPD_NODE_H
#define DDP_STEPD_NODE_H

#include <stdbool.h>

#include "stepd/task.h"
#include "util/error.h"

/*
 * With the node's other tasks, choose the GPUs and CPUs of each; fills in
 * placement, record and visible. Returns 0; -1 with what this task has found;
 * 1 if another task has found what ends them all, and says it.
 */
int ddp_node_join(struct ddp_task *task, struct ddp_error *error);

/*
 * In a task that ends: the others must not wait for it, and the agent tells the
 * supervisor why. Returns whether it is the first that ends so, and must print
 * that; alone, where they share nothing.
 */
bool ddp_node_fail(const char *why, bool alone);

/*
 * This task ends as another one of the node has failed, which has said why: for
 * the agent, which may see this one end first, it is the reason for both.
 */
void ddp_node_leave(void);

#endif
