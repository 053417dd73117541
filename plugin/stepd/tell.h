/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_TELL_H
#define DDP_STEPD_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "place/report.h"
#include "stepd/task.h"

/* --ddp=explain: print the rows of a node's ranks, on rank 0's with a head. */
void ddp_tell_rows(const struct ddp_task *task, const struct ddp_row *rows,
		   uint32_t count);

/* Print the task's warning. */
void ddp_tell_warning(const struct ddp_task *task);

/* Why LOCAL_RANK is not a device number. */
enum ddp_tell_device {
	DDP_TELL_OWN,		/* --ddp-gpus=own */
	DDP_TELL_SHARE,		/* --ddp-gpus=share, and more tasks than GPUs */
	DDP_TELL_CUT,		/* Slurm has given tasks different GPUs */
	DDP_TELL_INSTANCE,	/* each rank has its MIG instance */
	DDP_TELL_INSTANCES	/* a launcher has several */
};

/* Warn of that. Only the first of several like nodes says it. */
void ddp_tell_device(const struct ddp_task *task, enum ddp_tell_device why);

#endif
