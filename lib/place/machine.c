/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes machines, and asks them which CPUs and NUMA nodes belong together. */
#include "place/machine.h"

#include <stdlib.h>
#include <string.h>

struct ddp_machine *ddp_machine_create(uint32_t cpu_count, uint32_t gpu_count,
				       uint32_t part_count)
{
	struct ddp_machine *machine = calloc(1, sizeof(*machine));

	if (!machine)
		return NULL;
	machine->cpu_count = cpu_count;
	machine->gpu_count = gpu_count;
	machine->part_count = part_count;
	machine->cpus = calloc(cpu_count + 1, sizeof(*machine->cpus));
	machine->gpus = calloc(gpu_count + 1, sizeof(*machine->gpus));
	machine->parts = calloc(part_count + 1, sizeof(*machine->parts));
	if (machine->cpus && machine->gpus && machine->parts)
		return machine;
	ddp_machine_destroy(machine);
	return NULL;
}

void ddp_machine_destroy(struct ddp_machine *machine)
{
	if (!machine)
		return;
	free(machine->cpus);
	free(machine->gpus);
	free(machine->parts);
	free(machine);
}

struct ddp_gpu *ddp_machine_find_gpu(const struct ddp_machine *machine,
				     const char *bus_id)
{
	uint32_t i;

	for (i = 0; i < machine->gpu_count; i++)
		if (strcmp(machine->gpus[i].bus_id, bus_id) == 0)
			return &machine->gpus[i];
	return NULL;
}

void ddp_machine_cpus(const struct ddp_machine *machine,
		      struct ddp_cpuset *cpus)
{
	uint32_t i;

	ddp_cpuset_clear(cpus);
	for (i = 0; i < machine->cpu_count; i++)
		ddp_cpuset_add(cpus, machine->cpus[i].cpu);
}

void ddp_machine_packages(const struct ddp_machine *machine,
			  const struct ddp_cpuset *of,
			  struct ddp_cpuset *cpus)
{
	struct ddp_cpuset packages;
	uint32_t i;

	ddp_cpuset_clear(&packages);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(of, machine->cpus[i].cpu))
			ddp_cpuset_add(&packages, machine->cpus[i].package);
	ddp_cpuset_clear(cpus);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(&packages, machine->cpus[i].package))
			ddp_cpuset_add(cpus, machine->cpus[i].cpu);
}

void ddp_machine_numas(const struct ddp_machine *machine,
		       const struct ddp_cpuset *of, struct ddp_cpuset *numas)
{
	uint32_t i;

	ddp_cpuset_clear(numas);
	for (i = 0; i < machine->cpu_count; i++)
		if (ddp_cpuset_has(of, machine->cpus[i].cpu))
			ddp_cpuset_add(numas, machine->cpus[i].numa);
}
