/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells whether a process is in a job, and where the job's ranks run. Slurm's
 * PMIx does not give the node number or local rank of a remote rank, so both
 * are computed from the order of ranks on hosts.
 */
#ifndef DDP_JOB_LAUNCH_H
#define DDP_JOB_LAUNCH_H

#include <stdint.h>

#include "layout/layout.h"

/*
 * Returns 0 if a process without PMIx is alone. Returns -1 if Slurm or an MPI
 * launcher says in the environment that it has started several tasks: the error
 * then says how to start them.
 */
int ddp_launch_is_alone(struct ddp_error *error);

/* One rank, on this host. */
struct ddp_layout *ddp_launch_place_single(const char *host,
					   struct ddp_error *error);

/*
 * The layout by a node list and the process mapping on it (layout/tasks.h).
 */
struct ddp_layout *ddp_launch_place_mapped(const char *node_list,
					   const char *mapping, uint32_t ranks,
					   struct ddp_error *error);

/*
 * The layout by the name of each rank's host. The same name is the same host.
 */
struct ddp_layout *ddp_launch_place_named(char *const *names, uint32_t ranks,
					  struct ddp_error *error);

#endif
