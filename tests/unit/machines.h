/* SPDX-License-Identifier: BSD-3-Clause */
/* Regular machines, and random numbers that are the same everywhere. */
#ifndef DDP_UNIT_MACHINES_H
#define DDP_UNIT_MACHINES_H

#include <stdint.h>

#include "place/visible_gpus.h"
#include "place/machine.h"

/*
 * CPUs are numbered package by package, the second threads of all cores after
 * the first threads, as x86 has it. The caller gives the GPUs their places and
 * destroys the machine.
 */
struct ddp_machine *machine_make(uint32_t packages, uint32_t numas,
				 uint32_t cores, uint32_t threads,
				 uint32_t gpus);

/* Put a GPU next to the CPUs of a NUMA node. */
void machine_attach(struct ddp_machine *machine, uint32_t gpu, uint32_t numa);

/* The view of a task that sees the machine's first GPUs. */
void view_make(struct ddp_view *view, uint32_t gpus);

/* A number below limit. */
uint32_t random_below(uint64_t *state, uint32_t limit);

#endif
