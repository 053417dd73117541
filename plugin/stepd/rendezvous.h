/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_STEPD_RENDEZVOUS_H
#define DDP_STEPD_RENDEZVOUS_H

#include "stepd/task.h"
#include "util/error.h"

/*
 * Choose the master's address and port and the interface towards it, and check
 * that they can be used. Fills in vars and port_why; returns 0, or -1.
 */
int ddp_task_find_master(struct ddp_task *task, struct ddp_error *error);

#endif
