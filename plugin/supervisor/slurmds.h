/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches the slurmds of a step's nodes while some of these have not begun their
 * tasks. What still runs its prolog accepts a connection. Whose slurmd accepts none in
 * five rounds of 1.2 s is lost; where none at all has answered, in 24 rounds, as it
 * may be this host that reaches none.
 */
#ifndef DDP_SUPERVISOR_SLURMDS_H
#define DDP_SUPERVISOR_SLURMDS_H

#include "verdict/step.h"

struct ddp_slurmds_wish {
	uint32_t job_id, step_id;
	const struct ddp_step *step;	/* whose nodes in it have begun */
	const char *other;	/* one more node of the job, by which it is seen
				 * that slurmds can be reached; NULL: none */
};

/*
 * Runs in a process of its own, until that is killed. After each round it prints a
 * line on stdout, with a sign and the name of each node that has not begun and blanks
 * between: "+n1 -n2 ?n3": n1 has answered, n2 is lost, of n3 nothing is known yet.
 * Returns 1 where Slurm does not tell the nodes.
 */
int ddp_slurmds_watch(const struct ddp_slurmds_wish *wish);

#endif
