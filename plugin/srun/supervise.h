/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_SUPERVISE_H
#define DDP_SRUN_SUPERVISE_H

#include <stdbool.h>

/* Whether a failure ends the step. */
bool ddp_supervise_ends(void);

/*
 * All components are read: where a supervisor is wanted and there is none yet,
 * fork. Returns whether this is the child, which must run srun again. The
 * parent does not return.
 */
bool ddp_supervise(void);

#endif
