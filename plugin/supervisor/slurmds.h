/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the slurmds of a step's nodes listen: Slurm is asked, in the background. */
#ifndef DDP_SUPERVISOR_SLURMDS_H
#define DDP_SUPERVISOR_SLURMDS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Start a process that asks for the nodes of a step and for another one, unless
 * NULL. Returns a descriptor, which does not block, for its answer, as
 * ddp_late_read takes it; -1: there can be none. The process leads a group of
 * its own, with whatever it starts.
 */
int ddp_slurmds_ask(uint32_t job_id, uint32_t step_id, const char *other,
		    pid_t *pid);

#endif
