/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_AGENT_TEE_PROCESS_H
#define DDP_AGENT_TEE_PROCESS_H

#include <stdint.h>

#include "agent/copy.h"

/* The place of a task's stream among 2 * tasks; -1 if there is none. */
int ddp_tee_place(const struct ddp_note *note, uint32_t tasks);

/*
 * The process itself: reads messages from control, until DDP_NOTE_FINISH or,
 * where the agent has gone, until all streams have ended. states are shared,
 * by place.
 */
void ddp_tee_run(int control, struct ddp_copy_state *states, uint32_t tasks)
	__attribute__((noreturn));

#endif
