/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds which GPUs a task was given, from the text of its variables.
 *
 * These tell, in task_init, when Slurm has set all of them:
 *
 * CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES: what the GPU's runtime obeys.
 * Numbers count the GPUs that the task can reach, by bus id: all of the node
 * without ConstrainDevices, the task's or the step's own with it. Or they are
 * UUIDs: GPU-..., which may be cut short, or MIG-... .
 *
 * SLURM_STEP_GPUS: positions in gres.conf's list. Slurm writes them entry by
 * entry beside those of the former, so that the k-th of both is the same GPU.
 * (With a device cgroup for each task, Slurm 22.05 counts from 0 here, too.)
 *
 * The device files: struct ddp_gpu's reachable, whether this process can open
 * them.
 *
 * A number is resolved by the device files if they tell something, which is
 * right even if gres.conf lists only some of the node's GPUs; else by
 * SLURM_STEP_GPUS, assuming that gres.conf lists all GPUs by bus id; else as if
 * the task could reach all. A MIG instance has its parent's locality: its name
 * is MIG-(parent's UUID)/.../..., or it is among the machine's parts, or only
 * one GPU can be its parent.
 *
 * Under --gpu-bind=none each task is to use all GPUs of the step. In some
 * versions Slurm then sets none of these variables for several tasks on a node,
 * but SLURM_GPUS_ON_NODE, how many there are. If the task can open that many
 * device files, these are the GPUs; where no device files are known, as many
 * GPUs as the node has are all of them.
 */
#ifndef DDP_PLACE_VISIBLE_GPUS_H
#define DDP_PLACE_VISIBLE_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "place/machine.h"
#include "util/error.h"

#define DDP_GPU_NONE UINT32_MAX

enum { DDP_GPU_TOKEN_SIZE = 80 };	/* the longest name of a MIG instance */

/* A task's variables; NULL or "" where one is not set, "-1" for no GPU. */
struct ddp_gpus_env {
	const char *step_gpus;
	const char *cuda;
	const char *rocr;
	uint32_t on_node;		/* SLURM_GPUS_ON_NODE; 0: not set */
	const char *ze;			/* ZE_AFFINITY_MASK, of Intel's */
};

/* A GPU, or a part of one, as a task names it. */
struct ddp_gpu_ref {
	char token[DDP_GPU_TOKEN_SIZE];	/* as in the variable */
	uint32_t number;		/* on the node, from 0, as nvidia-smi
					 * and gres count; a part of a GPU has
					 * its parent's; DDP_GPU_NONE */
	uint32_t gpu;			/* in ddp_machine.gpus; DDP_GPU_NONE:
					 * it has no PCI device there */
};

/* The GPUs that a task sees, in its order. Plain data, for shared memory. */
struct ddp_view {
	bool rocr;			/* ROCR_VISIBLE_DEVICES speaks */
	uint32_t count;
	struct ddp_gpu_ref gpus[DDP_GPU_MAX];
};

/* Returns true if it is a MIG instance. */
bool ddp_gpus_is_instance(const struct ddp_gpu_ref *ref);

/* The name of the variable that counts. */
const char *ddp_gpus_variable(const struct ddp_view *view);

/*
 * Resolve a task's variables against the node. ROCR_VISIBLE_DEVICES counts on a
 * node whose GPUs are all by AMD, or where CUDA_VISIBLE_DEVICES is not set;
 * else CUDA_VISIBLE_DEVICES. Without either the view is empty, unless there are
 * GPUs that nothing names (see above). A GPU that the node does not show as a
 * PCI device is an error only on a node that shows some.
 *
 * Returns 0, or -1 for a malformed list, for more than DDP_GPU_MAX or for the
 * same GPU twice. Returns -1 also for a number or UUID that the node does not
 * have, if nothing tells which GPUs these are, or if Intel's alone are given.
 */
int ddp_gpus_resolve(const struct ddp_gpus_env *env,
		     const struct ddp_machine *machine, struct ddp_view *view,
		     struct ddp_error *error);

/* ---- the views of a node's tasks, put together */

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
