/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_ASKED_H
#define DDP_SRUN_ASKED_H

#include <stdbool.h>

#include "request/request.h"

/*
 * Reads what the user asks for in this step or job, from the options of srun,
 * sbatch or salloc. Texts are borrowed for ever.
 */
void ddp_asked_read(struct ddp_request *request);

/*
 * The same for a command that is a launcher: the job's number of tasks, which
 * Slurm repeats for each of its steps, says nothing of this one.
 */
void ddp_asked_read_launcher(struct ddp_request *request, const char *launcher);

/* Returns whether this srun runs in a task of a step of the user's. */
bool ddp_asked_in_step(void);

/* Returns true if the request says anything of GPUs. */
bool ddp_asked_gpus(const struct ddp_request *request);

/* --gpus, if it was given for this step; NULL if the job's is repeated. */
const char *ddp_asked_step_gpus(void);

#endif
