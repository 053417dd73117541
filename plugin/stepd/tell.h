/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_TELL_H
#define DDP_STEPD_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/report.h"
#include "stepd/task.h"

/* --ddp=explain: print the rows of a node's ranks, on rank 0's with a head. */
void ddp_tell_rows(const struct ddp_task *task, const struct ddp_row *rows,
		   uint32_t count);

/* Print the task's warning. */
void ddp_tell_warning(const struct ddp_task *task);

/*
 * Warn that LOCAL_RANK is not a device number. cut: because Slurm has given
 * tasks different GPUs. instances: some are MIG instances. Only the first of
 * several like nodes says it.
 */
void ddp_tell_device(const struct ddp_task *task, bool cut, bool instances);

#endif
