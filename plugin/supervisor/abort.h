/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SUPERVISOR_ABORT_H
#define DDP_SUPERVISOR_ABORT_H

#include "supervisor/attempt.h"

/*
 * srun has ended, and nobody is named: whether a rank has called MPI_Abort or
 * PMIx_Abort. If so, its end is now in the step, or abort_code is that of the
 * call where it is not known which rank did; and no user has ended the step.
 */
bool ddp_abort_find(struct ddp_attempt *attempt);

#endif
