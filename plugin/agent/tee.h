/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tee, ddp-tee: a process of the agent's beside the tasks of a node. It
 * copies what they print to Slurm and to logs, and keeps the last lines of each
 * task's standard error. It has the agent's memory, but descriptors of its own.
 * All here is called by the agent, which keeps every descriptor too: if somebody
 * kills the tee, another goes on; if somebody kills the agent, the tee goes on
 * until the last writer ends. Where memory is short the kernel kills both.
 */
#ifndef DDP_AGENT_TEE_H
#define DDP_AGENT_TEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/node.h"
#include "wire/wire.h"

struct ddp_tee;

/*
 * Returns a tee for this many tasks, or NULL if memory is short; notes is
 * slurmstepd's socket. No process is started yet, as there may be nothing to
 * copy. It stays until the agent ends.
 */
struct ddp_tee *ddp_tee_create(uint32_t tasks, int notes);

/*
 * Take the descriptors of a DDP_NOTE_OUTPUT message over, and hand them to the
 * process, which the first call starts. It inherits that signals are blocked.
 */
void ddp_tee_add(struct ddp_tee *tee, const struct ddp_note *note,
		 const int fds[DDP_NOTE_FDS]);

/* Its pid; 0: there is none. */
pid_t ddp_tee_pid(const struct ddp_tee *tee);

/*
 * To be polled for POLLIN; -1: there is no process. When it is ready, the
 * process has ended: revive starts another, unless all is done.
 */
int ddp_tee_fd(const struct ddp_tee *tee);
void ddp_tee_revive(struct ddp_tee *tee);

/* A task has ended: the process reads what it has left. */
void ddp_tee_end(struct ddp_tee *tee, uint32_t task);

/*
 * The last lines of the standard error of a task that has ended; "": none.
 * Waits, at most 2 s, until the tee has read what the task has written. tail[]
 * is that of struct ddp_wire.
 */
void ddp_tee_tail(struct ddp_tee *tee, uint32_t task,
		  char tail[DDP_WIRE_TAIL_SIZE]);

/*
 * Bytes that a task has printed, as far as its output goes through the tee, or
 * to a file.
 */
uint64_t ddp_tee_printed(const struct ddp_tee *tee, uint32_t task);

/*
 * All tasks have ended: the process copies what is left, for as long as Slurm
 * takes it, and ends. Returns whether it has ended, or there is none.
 */
bool ddp_tee_finish(struct ddp_tee *tee);

#endif
