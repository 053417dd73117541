/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology as XML, with the ranks in it, for lstopo. */
#define _GNU_SOURCE
#include "topo/topo.h"

#include <stdio.h>
#include <string.h>

#include "topo/hwloc_topo.h"

static hwloc_obj_t find_pci(hwloc_topology_t hwloc, const char *wanted)
{
	char bus_id[DDP_BUS_ID_SIZE];
	hwloc_obj_t pci = NULL;

	while ((pci = hwloc_get_next_pcidev(hwloc, pci)) != NULL) {
		ddp_topo_bus_id(pci, bus_id, sizeof(bus_id));
		if (strcmp(bus_id, wanted) == 0)
			break;
	}
	return pci;
}

/* The smallest object that has all of these CPUs. */
static hwloc_obj_t find_holder(hwloc_topology_t hwloc,
			       const struct ddp_cpuset *cpus)
{
	hwloc_bitmap_t bitmap = hwloc_bitmap_alloc();
	hwloc_obj_t holder = NULL;
	uint32_t cpu;

	if (!bitmap)
		return NULL;
	for (cpu = ddp_cpuset_next(cpus, 0); cpu < DDP_CPU_MAX;
	     cpu = ddp_cpuset_next(cpus, cpu + 1))
		hwloc_bitmap_set(bitmap, cpu);
	holder = hwloc_get_obj_covering_cpuset(hwloc, bitmap);
	hwloc_bitmap_free(bitmap);
	return holder ? holder : hwloc_get_root_obj(hwloc);
}

static int add_note(hwloc_topology_t hwloc, hwloc_obj_t at, const char *text)
{
	return at && hwloc_topology_insert_misc_object(hwloc, at, text) ?
	       0 : -1;
}

static int note_rank(hwloc_topology_t hwloc, const struct ddp_machine *machine,
		     const struct ddp_view *gpus,
		     const struct ddp_placement *placement, uint32_t rank)
{
	char cpus[DDP_CPUSET_TEXT_SIZE], text[256];
	const struct ddp_gpu_ref *ref;
	uint32_t i;
	int rc;

	ddp_cpuset_format(&placement->cpus, cpus, sizeof(cpus));
	snprintf(text, sizeof(text), "rank %u: CPUs %.200s", rank, cpus);
	rc = add_note(hwloc, find_holder(hwloc, &placement->cpus), text);
	snprintf(text, sizeof(text), "rank %u", rank);
	for (i = 0; i < placement->gpu_count; i++) {
		ref = &gpus->gpus[placement->gpus[i]];
		if (ref->gpu != DDP_GPU_NONE &&
		    add_note(hwloc,
			     find_pci(hwloc, machine->gpus[ref->gpu].bus_id),
			     text))
			rc = -1;
	}
	return rc;
}

char *ddp_topo_draw(struct ddp_topo *topo, const struct ddp_machine *machine,
		    const struct ddp_view *gpus,
		    const struct ddp_placements *placements,
		    const uint32_t *ranks, struct ddp_error *error)
{
	const struct ddp_placement *placement;
	char *xml = NULL, *text = NULL;
	int length;
	uint32_t i;

	for (i = 0; (placement = ddp_placement_get(placements, i)); i++) {
		if (note_rank(topo->hwloc, machine, gpus, placement,
			      ranks[i]) == 0)
			continue;
		ddp_error_set(error, DDP_ERROR_SYSTEM, "hwloc cannot note "
			      "rank %u in the topology", ranks[i]);
		return NULL;
	}
	/* A copy, because hwloc's own text ends with the topology. */
	if (hwloc_topology_export_xmlbuffer(topo->hwloc, &xml, &length, 0) == 0)
		text = strdup(xml);
	if (!text)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "hwloc cannot write "
			      "the topology with its ranks as XML");
	if (xml)
		hwloc_free_xmlbuffer(topo->hwloc, xml);
	return text;
}
