/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the tasks of one node wait for each other before their programs run: in
 * memory that slurmstepd maps before it forks them. It has no name, so that
 * nobody else can reach it, and slurmstepd itself never reads it.
 *
 * A gate is closed until one task opens it; each of the others waits there at
 * most once, and not for ever.
 */
#ifndef DDP_PLUGIN_SIBLINGS_H
#define DDP_PLUGIN_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/error.h"

#define DDP_SIBLINGS_WAIT_S 10

enum ddp_gate {
	DDP_GATE_MACHINE,	/* the node's hardware is known */
	DDP_GATE_SAID,		/* every task has said what it was given */
	DDP_GATE_PLACED,	/* every task's place is chosen */
	DDP_GATE_COUNT
};

struct ddp_siblings;

/*
 * In slurmstepd: for count tasks, with size bytes of zeros to share. Only what
 * is touched of them takes memory. NULL on error; never destroyed, but gone
 * with the processes.
 */
struct ddp_siblings *ddp_siblings_create(uint32_t count, size_t size,
					 struct ddp_error *error);

/* The shared bytes, at one address in all tasks. */
void *ddp_siblings_memory(struct ddp_siblings *siblings);
uint32_t ddp_siblings_count(const struct ddp_siblings *siblings);

/* Each task calls both once; true for the last that has something to say. */
void ddp_siblings_arrive(struct ddp_siblings *siblings);
bool ddp_siblings_say(struct ddp_siblings *siblings);

void ddp_siblings_open(struct ddp_siblings *siblings, enum ddp_gate gate);

/*
 * Returns 0 if the gate is open, 1 if a sibling has failed, -1 after
 * DDP_SIBLINGS_WAIT_S seconds, in which a task that was stopped does not age.
 * what is not done then completes the error.
 */
int ddp_siblings_wait(struct ddp_siblings *siblings, enum ddp_gate gate,
		      const char *what, struct ddp_error *error);

/* This task fails: whether it is the first. The others notice by and by. */
bool ddp_siblings_fail(struct ddp_siblings *siblings);
bool ddp_siblings_failed(struct ddp_siblings *siblings);

#endif
