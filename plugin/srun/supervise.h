/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_SUPERVISE_H
#define DDP_SRUN_SUPERVISE_H

#include <stdbool.h>

/* Returns true if a failure ends the step. */
bool ddp_supervise_ends(void);

/*
 * Returns true if the supervisor ends it then, and not Slurm, where the user
 * has left that open. The supervisor gives the other ranks time, to end or to
 * save.
 */
bool ddp_supervise_alone(void);

/*
 * All components are read: where a supervisor is wanted and there is none yet,
 * fork. Returns whether this is the child, which must run srun again. The
 * parent does not return.
 */
bool ddp_supervise(void);

#endif
