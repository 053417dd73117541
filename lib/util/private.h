/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of the folder that a rank of ddp-train makes for MPI's shared
 * memory, and of the files that the plugin makes for a rank. The end is random,
 * so that nobody can take it first; before that stands whose it is, so that what
 * a killed rank leaves can be removed.
 */
#ifndef DDP_UTIL_PRIVATE_H
#define DDP_UTIL_PRIVATE_H

#include <stdint.h>

enum { DDP_PRIVATE_SIZE = 64 };	/* holds a path and its NUL */

/* The folders that may hold it: one in memory if possible, as Open MPI would.
 * Ends with NULL. */
extern const char *const ddp_private_parents[];

/* "slurm-ddp.JOB.STEP.RANK.", as Slurm's variables of a task have them. */
void ddp_private_format(uint32_t job_id, uint32_t step_id, uint32_t rank,
			char name[DDP_PRIVATE_SIZE]);

#endif
