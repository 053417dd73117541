/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds how near CPUs are to a GPU, and writes the reasons of a placement. */
#include "place/near.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ddp_near_find(const struct ddp_machine *machine, uint32_t gpu,
		   struct ddp_near *near)
{
	memset(near, 0, sizeof(*near));
	if (gpu == DDP_GPU_NONE)
		return;
	near->known = true;
	near->cpus[0] = machine->gpus[gpu].cpus;
	ddp_machine_packages(machine, &near->cpus[0], &near->cpus[1]);
}

uint32_t ddp_near_distance(const struct ddp_near *near,
			   const struct ddp_cpuset *mask, uint32_t *count)
{
	struct ddp_cpuset part;
	uint32_t level;

	*count = ddp_cpuset_count(mask);
	if (!near->known)
		return 0;
	for (level = 0; level < DDP_NEAR_LEVELS; level++) {
		ddp_cpuset_and(&part, mask, &near->cpus[level]);
		if (ddp_cpuset_empty(&part))
			continue;
		*count = ddp_cpuset_count(&part);
		return level;
	}
	return DDP_NEAR_LEVELS;
}

uint32_t ddp_placement_distance(const struct ddp_machine *machine,
				const struct ddp_cpuset *mask, uint32_t gpu)
{
	struct ddp_near near;
	uint32_t count;

	ddp_near_find(machine, gpu, &near);
	return ddp_near_distance(&near, mask, &count);
}

void ddp_why_add(struct ddp_placement *placement, const char *format, ...)
{
	va_list args;

	if (placement->why_count == DDP_WHY_MAX)
		return;
	va_start(args, format);
	vsnprintf(placement->why[placement->why_count++], DDP_WHY_SIZE, format,
		  args);
	va_end(args);
}
