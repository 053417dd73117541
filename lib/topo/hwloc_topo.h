/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of lib/topo share. Private to them.
 */
#ifndef DDP_TOPO_HWLOC_TOPO_H
#define DDP_TOPO_HWLOC_TOPO_H

#include <hwloc.h>

struct ddp_topo {
	hwloc_topology_t hwloc;
};

/* Write a PCI device's bus id. */
void ddp_topo_bus_id(hwloc_obj_t pci, char *out, size_t size);

#endif
