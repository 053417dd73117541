/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin/node is what the tasks of a node, as plugin/stepd prepares them, and
 * their agent share: memory, gates in it, and notes.
 *
 * Here: what lies in the memory that the tasks of a node share: root.c maps it, and
 * the tasks and their agent alone read and write it.
 */
#ifndef DDP_NODE_SHARED_H
#define DDP_NODE_SHARED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "place/cpuset.h"
#include "place/machine.h"
#include "place/placement.h"
#include "place/views.h"
#include "util/failure.h"
#include "util/private.h"

enum {
	DDP_GPUS_SIZE = 256,		/* holds a rank's GPUs, or is cut */
	DDP_VISIBLE_SIZE = 32 + DDP_VIEWS_TEXT_SIZE,
	DDP_RECORD_SIZE = 96 << 10	/* more than a record of 64 GPUs has */
};

/*
 * The slot of a task, by local rank, in shared memory: what it says, and its
 * answer.
 */
struct ddp_slot {
	uint32_t rank;
	pid_t pid;
	struct ddp_cpuset mask;
	struct ddp_view view;
	struct ddp_placement placement;
	char visible[DDP_VISIBLE_SIZE];	/* "VARIABLE=value" that orders what
					 * it sees; "": none */
	char record[DDP_RECORD_SIZE];	/* its row, as DDP_PLACEMENT has it */
	char gpus[DDP_GPUS_SIZE];	/* its own, on the node: "0,1"; "" */
	char buses[DDP_GPUS_SIZE];	/* and where: "0000:3b:00.0 ..."; "" */
	char error_file[DDP_PRIVATE_SIZE];	/* which the agent reads; "" */
	char error_folder[DDP_PRIVATE_SIZE];	/* a launcher's, for it; "" */
	char refusal[DDP_FAILURE_SIZE];	/* why its program does not start; "" */
	char warning[DDP_FAILURE_SIZE];	/* why ranks may not meet; "" */
	char heartbeat_file[DDP_PRIVATE_SIZE];	/* as error_file; "" */
};

/*
 * The memory that the tasks share. It has what the names of GPUs are resolved
 * by, and nothing else of the machine.
 */
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

#endif
