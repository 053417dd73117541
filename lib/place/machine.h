/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware of one node as plain data, as much of it as placement needs, and
 * sets of its CPUs. lib/topo fills it from hwloc; tests write it by hand.
 */
#ifndef DDP_PLACE_MACHINE_H
#define DDP_PLACE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/*
 * A set of CPU numbers (or of NUMA node numbers). It is a plain value: it can
 * be copied, compared with memcmp and put into shared memory.
 *
 * Its text is the kernel's: "0-3,8". Numbers may be read in any order and may
 * overlap; they are printed in ascending order, in the longest ranges.
 */
enum { DDP_CPU_MAX = 8192 };	/* CPUs are numbered from 0 to this - 1 */

struct ddp_cpuset {
	uint64_t words[DDP_CPU_MAX / 64];
};

void ddp_cpuset_clear(struct ddp_cpuset *set);

/* The number must be below DDP_CPU_MAX. */
void ddp_cpuset_add(struct ddp_cpuset *set, uint32_t cpu);
bool ddp_cpuset_has(const struct ddp_cpuset *set, uint32_t cpu);

bool ddp_cpuset_empty(const struct ddp_cpuset *set);
bool ddp_cpuset_equal(const struct ddp_cpuset *a, const struct ddp_cpuset *b);
bool ddp_cpuset_meet(const struct ddp_cpuset *a, const struct ddp_cpuset *b);
uint32_t ddp_cpuset_count(const struct ddp_cpuset *set);

/* out may be a or b. andnot: what is in a and not in b. */
void ddp_cpuset_and(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		    const struct ddp_cpuset *b);
void ddp_cpuset_or(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		   const struct ddp_cpuset *b);
void ddp_cpuset_andnot(struct ddp_cpuset *out, const struct ddp_cpuset *a,
		       const struct ddp_cpuset *b);

/* The lowest number in set that is at least cpu; DDP_CPU_MAX if none is. */
uint32_t ddp_cpuset_next(const struct ddp_cpuset *set, uint32_t cpu);

/*
 * Read text, which must name at least one CPU. Returns 0, or -1 with *set
 * unchanged. The time follows the length of the text, not its numbers.
 */
int ddp_cpuset_parse(const char *text, struct ddp_cpuset *set,
		     struct ddp_error *error);

enum { DDP_CPUSET_TEXT_SIZE = 32768 };	/* holds every set's text */

/*
 * Write the text, which is "" for an empty set. Returns 0, or -1 if out[size]
 * is too small.
 */
int ddp_cpuset_format(const struct ddp_cpuset *set, char *out, size_t size);

/* ---- a node */

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
