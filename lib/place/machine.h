/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware of one node as plain data, as much of it as placement needs.
 * lib/topo fills it from hwloc; tests write it by hand.
 */
#ifndef DDP_PLACE_MACHINE_H
#define DDP_PLACE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "place/cpuset.h"

enum {
	DDP_GPU_MAX = 64,		/* GPUs of a node */
	DDP_BUS_ID_SIZE = 24,		/* "0000:04:00.0", "00010000:..." */
	DDP_MODEL_SIZE = 64,
	DDP_UUID_SIZE = 48,		/* "GPU-" and 36 digits, and NUL */
	DDP_INTERFACE_SIZE = 16,
	DDP_DEVICE_SIZE = 64
};

/*
 * One hardware thread. numa is the kernel's number of the NUMA node whose
 * memory is local to it, the lowest if there are several, such as a GPU's
 * memory and the CPU's. So a NUMA node without CPUs does not occur.
 */
struct ddp_cpu {
	uint16_t cpu;			/* the kernel's number */
	uint16_t core;			/* counted within the machine, from 0 */
	uint16_t numa;
	uint16_t package;		/* counted within the machine, from 0 */
};

enum ddp_vendor {
	DDP_VENDOR_NVIDIA,
	DDP_VENDOR_AMD
};

struct ddp_gpu {
	enum ddp_vendor vendor;
	char bus_id[DDP_BUS_ID_SIZE];	/* lower case, with domain */
	char model[DDP_MODEL_SIZE];
	char uuid[DDP_UUID_SIZE];	/* "" if it is not known */
	char interface[DDP_INTERFACE_SIZE]; /* nearest network interface; "" if
					 * there is none */
	struct ddp_cpuset cpus;		/* near it, never empty */
	char device[DDP_DEVICE_SIZE];	/* its device file; "" if not known */
	bool reachable;			/* this process may open that file */
};

/* A part of a GPU (MIG), which has a UUID of its own. */
struct ddp_gpu_part {
	char uuid[DDP_UUID_SIZE];	/* "MIG-" and 36 digits */
	uint32_t gpu;			/* the GPU: its index in gpus */
};

struct ddp_machine {
	uint32_t cpu_count;
	struct ddp_cpu *cpus;		/* in an order in which threads of a
					 * core are neighbours, as are cores
					 * of a NUMA node, and NUMA nodes of a
					 * package */
	uint32_t gpu_count;
	struct ddp_gpu *gpus;		/* by bus id, the order in which gres,
					 * ROCm and CUDA (with
					 * CUDA_DEVICE_ORDER=PCI_BUS_ID) count
					 * them */
	uint32_t part_count;
	struct ddp_gpu_part *parts;	/* those that are known, maybe none */
};

/* A machine of zeros, or NULL if memory is short; the caller destroys it. */
struct ddp_machine *ddp_machine_create(uint32_t cpu_count, uint32_t gpu_count,
				       uint32_t part_count);
void ddp_machine_destroy(struct ddp_machine *machine);	/* accepts NULL */

/* The GPU with this bus id; NULL if there is none. */
struct ddp_gpu *ddp_machine_find_gpu(const struct ddp_machine *machine,
				     const char *bus_id);

/* All CPUs of the machine. */
void ddp_machine_cpus(const struct ddp_machine *machine,
		      struct ddp_cpuset *cpus);

/* All CPUs of the packages to which some of these CPUs belong. */
void ddp_machine_packages(const struct ddp_machine *machine,
			  const struct ddp_cpuset *of,
			  struct ddp_cpuset *cpus);

/* The numbers of the NUMA nodes to which some of these CPUs belong. */
void ddp_machine_numas(const struct ddp_machine *machine,
		       const struct ddp_cpuset *of, struct ddp_cpuset *numas);

#endif
