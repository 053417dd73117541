/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The views of a node's tasks, put together: which GPUs there are among all of
 * them, and how a task names those that it is to see.
 */
#ifndef DDP_PLACE_VIEWS_H
#define DDP_PLACE_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/gpus.h"
#include "place/machine.h"
#include "util/error.h"

/*
 * All GPUs of several views, each once, and where each view's k-th GPU is
 * among them: indexes[i][k]. Returns 0, or -1 if there are more than
 * DDP_GPU_MAX. The order is by number, then as they are met.
 */
int ddp_views_join(const struct ddp_view *views, uint32_t count,
		   struct ddp_view *all, uint32_t (*indexes)[DDP_GPU_MAX],
		   struct ddp_error *error);

/*
 * The same for all tasks of a step on a node, where the step has on_node GPUs
 * (SLURM_GPUS_ON_NODE; 0: not known).
 *
 * With a device cgroup for each task, Slurm counts from 0 in each of them, in
 * SLURM_STEP_GPUS as well. Tasks then seem to share a GPU though each has its
 * own. That is assumed, and *apart becomes true, if some GPU is in two views
 * and the step has GPUs enough for all of them to differ. Besides, all must be
 * named by numbers, and none may have a device file that would tell which one
 * it is. Nothing is known of these GPUs then: in views and all their gpu is
 * DDP_GPU_NONE, and their numbers, which merely differ, are not to be shown.
 */
int ddp_views_join_node(const struct ddp_machine *machine, uint32_t on_node,
			struct ddp_view *views, uint32_t count,
			struct ddp_view *all,
			uint32_t (*indexes)[DDP_GPU_MAX], bool *apart,
			struct ddp_error *error);

/*
 * The variable's value with which a task that has this view sees the GPUs
 * visible[count], indexes into all, in this order. Returns 0, or -1 if the
 * view lacks one of them or out[size] is too small, which it is not if size is
 * DDP_VIEWS_TEXT_SIZE.
 *
 * Set this variable alone: HIP lets CUDA_VISIBLE_DEVICES and
 * HIP_VISIBLE_DEVICES count what ROCR_VISIBLE_DEVICES has left, so to reorder
 * them as well would undo it.
 */
enum { DDP_VIEWS_TEXT_SIZE = DDP_GPU_MAX * DDP_GPU_TOKEN_SIZE };

int ddp_views_format(const struct ddp_view *view, const struct ddp_view *all,
		     const uint32_t *visible, uint32_t count, char *out,
		     size_t size);

#endif
