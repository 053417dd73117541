/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_AGENT_TEE_PROCESS_H
#define DDP_AGENT_TEE_PROCESS_H

#include <stdint.h>

#include "agent/splice.h"

/* The place of a task's stream among 2 * tasks; -1 if there is none. */
int ddp_tee_place(const struct ddp_note *note, uint32_t tasks);

/*
 * The memory of the process, which it shares with the agent. It gets no other:
 * if either were killed meanwhile, malloc would stay locked in both. states are
 * by place. NULL: out of memory.
 */
struct ddp_tee_process *ddp_tee_process_create(struct ddp_copy_state *states,
					       uint32_t tasks);
void ddp_tee_process_destroy(struct ddp_tee_process *process);

/*
 * The process itself, which reads messages from control. After DDP_NOTE_FINISH it
 * copies what is left, and ends. Where the agent has gone, it does so when
 * slurmstepd has shut its side of notes down for writing, or when nobody can
 * write any more. Meanwhile it writes a byte to notes whenever Slurm has taken
 * something, and it ends at once when slurmstepd closes notes.
 */
void ddp_tee_run(struct ddp_tee_process *process, int control, int notes);

#endif
