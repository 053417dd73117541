/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes regular machines, and random numbers that are the same everywhere. */
#include "machines.h"

#include <stdio.h>

struct ddp_machine *machine_make(uint32_t packages, uint32_t numas,
				 uint32_t cores, uint32_t threads,
				 uint32_t gpus)
{
	uint32_t all = packages * numas * cores, core, thread, i;
	struct ddp_machine *machine = ddp_machine_create(all * threads, gpus,
							 0);
	struct ddp_cpu *cpu = machine->cpus;

	for (core = 0; core < all; core++)
		for (thread = 0; thread < threads; thread++)
			*cpu++ = (struct ddp_cpu){
				.cpu = (uint16_t)(core + thread * all),
				.core = (uint16_t)core,
				.numa = (uint16_t)(core / cores),
				.package = (uint16_t)(core / cores / numas),
			};
	for (i = 0; i < gpus; i++)
		snprintf(machine->gpus[i].bus_id, DDP_BUS_ID_SIZE,
			 "0000:%02x:00.0", i + 1);
	return machine;
}

void machine_attach(struct ddp_machine *machine, uint32_t gpu, uint32_t numa)
{
	uint32_t i;

	ddp_cpuset_clear(&machine->gpus[gpu].cpus);
	for (i = 0; i < machine->cpu_count; i++)
		if (machine->cpus[i].numa == numa)
			ddp_cpuset_add(&machine->gpus[gpu].cpus,
				       machine->cpus[i].cpu);
}

void view_make(struct ddp_view *view, uint32_t gpus)
{
	uint32_t i;

	*view = (struct ddp_view){ .count = gpus };
	for (i = 0; i < gpus; i++) {
		snprintf(view->gpus[i].token, DDP_GPU_TOKEN_SIZE, "%u", i);
		view->gpus[i].number = i;
		view->gpus[i].gpu = i;
	}
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33) % limit;
}
