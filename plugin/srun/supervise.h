/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_SUPERVISE_H
#define DDP_SRUN_SUPERVISE_H

#include <stdbool.h>

/* Whether a failure ends the step. */
bool ddp_supervise_ends(void);

/*
 * Whether then the supervisor ends it, and not Slurm, where the user has left
 * that open: it gives the others time, to end or to save.
 */
bool ddp_supervise_alone(void);

/*
 * All components are read: where a supervisor is wanted and there is none yet,
 * fork. Returns whether this is the child, which must run srun again. The
 * parent does not return.
 */
bool ddp_supervise(void);

#endif
