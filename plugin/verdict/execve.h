/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_VERDICT_EXECVE_H
#define DDP_VERDICT_EXECVE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/failure.h"

/*
 * Where slurmstepd could not execute a task's command, it wrote why as the last
 * line of the task's stderr, and ended the task with the error as exit code.
 * Takes that line off the tail, and says it as a cause; "" if it is not there.
 */
void ddp_execve_take(char *tail, uint32_t status, char cause[DDP_FAILURE_SIZE]);

/* Returns true if cause, which may be NULL, is one of those. */
bool ddp_execve_is(const char *cause);

#endif
