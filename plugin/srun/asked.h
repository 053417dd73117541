/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_ASKED_H
#define DDP_SRUN_ASKED_H

#include <stdbool.h>

#include "layout/request.h"

/*
 * What the user asks for in this step or job, from the options of srun, sbatch
 * or salloc. Texts are borrowed for ever.
 */
void ddp_asked_read(struct ddp_request *request);

/* Whether it says anything of GPUs. */
bool ddp_asked_gpus(const struct ddp_request *request);

/* --gpus, if it was given for this step; NULL if the job's is repeated. */
const char *ddp_asked_step_gpus(void);

#endif
