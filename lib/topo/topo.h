/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's hardware as the plain data of place/machine.h: CPUs, NUMA nodes,
 * GPUs and network devices. This folder is the only code that knows hwloc.
 * Start with topo.c, which loads a topology; machine.c converts it.
 *
 * hwloc runs without its vendors' back ends (CUDA, NVML, OpenCL, ROCm SMI,
 * Level Zero, GL), because they may hang or wake devices; GPUs are found as PCI
 * devices. A PCI device counts as a GPU if it is
 *   by NVIDIA, and a display controller: 0302 (3D), or 0300 (VGA), which a GPU
 *	with a display output is;
 *   by AMD, and one of these, 0380 (other display) or 1200 (accelerator).
 * So a server's management graphics (ASPEED, Matrox) and virtual displays do
 * not count.
 *
 * In slurmstepd: in task_init only, where the process is the user's. hwloc
 * opens its plugins and reads sysfs; a file is read with the user's rights.
 */
#ifndef DDP_TOPO_TOPO_H
#define DDP_TOPO_TOPO_H

#include <stdbool.h>

#include "place/machine.h"
#include "place/placement.h"
#include "util/error.h"

enum { DDP_TOPO_FILE_MAX = 16 << 20 };	/* bytes in a topology file */

struct ddp_topo {
	struct hwloc_topology *hwloc;	/* for lib/topo alone */
};

/*
 * This machine's topology (file NULL), or the one that an hwloc XML file
 * describes, which may be another machine's. CPUs that the process may not use
 * are included. The caller destroys it. NULL if the file cannot be read, is not
 * a regular file, is longer than DDP_TOPO_FILE_MAX, or declares entities or
 * nests too deeply. A child process tries the file first: NULL also if hwloc
 * refuses it, crashes, uses too much memory or takes too long.
 */
struct ddp_topo *ddp_topo_create(const char *file, struct ddp_error *error);

/*
 * The part of this machine's topology that ddp_topo_machine needs, in less
 * time: no caches, and no devices where none of them is a GPU. The caller
 * destroys it. NULL if hwloc fails.
 */
struct ddp_topo *ddp_topo_find(struct ddp_error *error);
void ddp_topo_destroy(struct ddp_topo *topo);		/* NULL: nothing */

/*
 * The CPUs and GPUs of a topology, for the caller to destroy; topo may be
 * destroyed before. UUIDs and MIG instances are known from a file alone: there
 * the PCI device or a device below it has them as "NVIDIAUUID", "AMDUUID", and
 * any number of "MIGUUID" (as hwloc-annotate writes them). For this machine
 * ddp_topo_drivers adds what the driver says.
 *
 * NULL if memory is short, if there is no CPU, or if there are more than
 * machine.h allows. NULL also if a CPU's or NUMA node's number is above what a
 * set can hold, or if a CPU's number or a GPU's bus id occurs twice.
 */
struct ddp_machine *ddp_topo_machine(const struct ddp_topo *topo,
				     struct ddp_error *error);

/*
 * Add what the drivers say of this machine's GPUs, read below root ("" but in
 * tests): of those by NVIDIA the UUID and the device file, from
 * /proc/driver/nvidia/gpus/<bus id>; of those by AMD the device file, and the parts
 * into which a mode such as CPX divides a GPU, from /sys/class/kfd: each counts as a
 * GPU, with the bus id of the whole. What is not there stays unknown, which is no
 * error.
 */
void ddp_topo_drivers(struct ddp_machine *machine, const char *root);

/*
 * Ask, for each GPU, whether this very process may open its device file below
 * root: device cgroups may differ from task to task. The files are not opened,
 * which would wake the devices.
 */
void ddp_topo_reach(struct ddp_machine *machine, const char *root);

/* Returns true if a PCI device below root, in sysfs, counts as a GPU. */
bool ddp_topo_has_gpu(const char *root);

/*
 * Returns true if this process may open a device file of some GPU or other
 * accelerator, of whichever vendor, below root. If not, no framework finds one.
 */
bool ddp_topo_has_device(const char *root);

/*
 * The topology as hwloc's XML, with each rank noted at its CPUs and at its own
 * GPUs, for lstopo to draw. machine is what ddp_topo_machine gave, and gpus is
 * what placements were made of; ranks[local rank] is the rank to name. The
 * caller frees the text; NULL if hwloc fails or memory is short.
 */
char *ddp_topo_draw(struct ddp_topo *topo, const struct ddp_machine *machine,
		    const struct ddp_view *gpus,
		    const struct ddp_placements *placements,
		    const uint32_t *ranks, struct ddp_error *error);

#endif
