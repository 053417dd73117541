/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which job a process is in, and where the job's ranks run. Slurm's PMIx does
 * not tell a remote rank's node number or local rank, so both follow from the
 * order of ranks on hosts.
 */
#ifndef DDP_JOB_LAUNCH_H
#define DDP_JOB_LAUNCH_H

#include <stdint.h>

#include "layout/layout.h"

/*
 * Whether a process that no launcher offers PMIx to is alone: where Slurm or
 * an MPI launcher says in the environment that it has started several, it is
 * not, and the error says how to start it. Returns 0 or -1.
 */
int ddp_launch_is_alone(struct ddp_error *error);

/* One rank, on the host of that name. */
struct ddp_layout *ddp_launch_place_single(const char *host,
					   struct ddp_error *error);

/* From the list of nodes, and the process mapping on it (layout/mapping.h), of
 * a job of so many ranks. */
struct ddp_layout *ddp_launch_place_mapped(const char *node_list,
					   const char *mapping, uint32_t ranks,
					   struct ddp_error *error);

/* From the name of each rank's host; the same name is the same host. */
struct ddp_layout *ddp_launch_place_named(char *const *names, uint32_t ranks,
					  struct ddp_error *error);

#endif
