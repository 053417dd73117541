/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology that the parts of lib/topo share. Private to them. */
#ifndef DDP_TOPO_HWLOC_TOPO_H
#define DDP_TOPO_HWLOC_TOPO_H

#include <hwloc.h>
#include <stdbool.h>

struct ddp_topo {
	hwloc_topology_t hwloc;
};

/* The rule of topo.h, by a device's vendor and class. */
bool ddp_topo_is_gpu(unsigned int vendor, unsigned int class_id);

/* Write a PCI device's bus id. */
void ddp_topo_bus_id(hwloc_obj_t pci, char *out, size_t size);

#endif
