/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds where Slurm has put the ranks of a step. The step's node list tells
 * only for some distributions, and from Slurm 26.05 on the cluster's topology
 * counts, too. sattach prints what the controller has decided.
 */
#ifndef DDP_SRUN_ORDER_H
#define DDP_SRUN_ORDER_H

#include <stdint.h>

struct ddp_order {
	char *master;		/* the node of rank 0 */
	char *mapping;		/* of all ranks, as layout/mapping.h has it */
};

/* Returns 0; -1, with both NULL, if Slurm does not tell. */
int ddp_order_read(uint32_t job_id, uint32_t step_id, struct ddp_order *order);
void ddp_order_free(struct ddp_order *order);

#endif
