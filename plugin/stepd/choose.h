/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_CHOOSE_H
#define DDP_STEPD_CHOOSE_H

#include <stdint.h>

#include "node/shared.h"
#include "place/machine.h"
#include "stepd/task.h"
#include "util/error.h"

/*
 * Answer what all slots say; print the warnings and the rows that are due. task
 * is the one that does it, whose layout knows the ranks. Returns 0, or -1.
 */
int ddp_choose(const struct ddp_task *task, const struct ddp_machine *machine,
	       struct ddp_slot *slots, uint32_t count,
	       struct ddp_error *error);

#endif
