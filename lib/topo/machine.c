/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns hwloc's topology into the core's plain structs, asks the kernel and the
 * drivers what it does not know, and draws ranks into it.
 */
#define _GNU_SOURCE
#include "topo/topo.h"

#include <fcntl.h>
#include <glob.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"

/* ---- the machine */

enum { PCI_NVIDIA = 0x10de, PCI_AMD = 0x1002 };

/* hwloc 3 gives a device several types: one with RDMA has a network's, too. */
#if HWLOC_API_VERSION >= 0x00030000
#define INFOS(object) ((object)->infos.array)
#define INFO_COUNT(object) ((object)->infos.count)
#define IS_OSDEV(device, TYPE) \
	(((device)->attr->osdev.types & HWLOC_OBJ_OSDEV_##TYPE) != 0)
#else
#define INFOS(object) ((object)->infos)
#define INFO_COUNT(object) ((object)->infos_count)
#define IS_OSDEV(device, TYPE) \
	((device)->attr->osdev.type == HWLOC_OBJ_OSDEV_##TYPE)
#endif

static void format_bus_id(hwloc_obj_t pci, char *out, size_t size)
{
	snprintf(out, size, "%04x:%02x:%02x.%x", pci->attr->pcidev.domain,
		 pci->attr->pcidev.bus, pci->attr->pcidev.dev,
		 pci->attr->pcidev.func);
}

/* The rule of topo.h, by a device's vendor and class. */
static bool is_gpu(unsigned int vendor, unsigned int class_id)
{
	switch (vendor) {
	case PCI_NVIDIA:
		return class_id == 0x0300 || class_id == 0x0302;
	case PCI_AMD:
		return class_id == 0x0300 || class_id == 0x0302 ||
		       class_id == 0x0380 || class_id == 0x1200;
	}
	return false;
}

static int compare_bus(const void *a, const void *b)
{
	const struct hwloc_pcidev_attr_s *x =
		&(*(const hwloc_obj_t *)a)->attr->pcidev;
	const struct hwloc_pcidev_attr_s *y =
		&(*(const hwloc_obj_t *)b)->attr->pcidev;

	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->func < y->func ? -1 : x->func > y->func;
}

/* The GPUs in the order of their bus ids; the caller frees the array. */
static hwloc_obj_t *find_gpus(hwloc_topology_t hwloc, uint32_t *count,
			      struct ddp_error *error)
{
	hwloc_obj_t *gpus = calloc(DDP_GPU_MAX, sizeof(*gpus)), pci = NULL;

	*count = 0;
	if (!gpus) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	while ((pci = hwloc_get_next_pcidev(hwloc, pci)) != NULL) {
		if (!is_gpu(pci->attr->pcidev.vendor_id,
			    pci->attr->pcidev.class_id))
			continue;
		if (*count == DDP_GPU_MAX) {
			ddp_error_set(error, DDP_ERROR_ARGUMENT,
				      "the topology has more than %d GPUs",
				      DDP_GPU_MAX);
			free(gpus);
			return NULL;
		}
		gpus[(*count)++] = pci;
	}
	qsort(gpus, *count, sizeof(*gpus), compare_bus);
	return gpus;
}

/*
 * Collect the values of the infos of this name, of a device and of those below
 * it. Returns how many there are, which may be more than there is room for.
 */
static uint32_t find_infos(hwloc_obj_t object, const char *name,
			   const char **values, uint32_t room)
{
	uint32_t found = 0, i;
	hwloc_obj_t child;

	for (i = 0; i < INFO_COUNT(object); i++)
		if (strcmp(INFOS(object)[i].name, name) == 0) {
			if (found < room)
				values[found] = INFOS(object)[i].value;
			found++;
		}
	for (child = object->io_first_child; child;
	     child = child->next_sibling)
		found += find_infos(child, name, values + found,
				    found < room ? room - found : 0);
	return found;
}

static void copy_text(char *out, size_t size, const char *text, size_t length)
{
	size_t i;

	if (length >= size)
		length = size - 1;
	while (length > 0 && text[length - 1] == ' ')
		length--;
	for (i = 0; i < length; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[length] = '\0';
}

/* The usual name of "GV100GL [Tesla V100 SXM2 16GB]" is the one in brackets. */
static void find_model(hwloc_obj_t pci, char *out, size_t size)
{
	const char *name = hwloc_obj_get_info_by_name(pci, "PCIDevice");
	const char *open = name ? strrchr(name, '[') : NULL;
	const char *close = open ? strchr(open, ']') : NULL;

	if (!name)
		snprintf(out, size, "%04x:%04x", pci->attr->pcidev.vendor_id,
			 pci->attr->pcidev.device_id);
	else if (close && close > open + 1)
		copy_text(out, size, open + 1, (size_t)(close - open - 1));
	else
		copy_text(out, size, name, strlen(name));
}

static bool is_above(hwloc_obj_t above, hwloc_obj_t object)
{
	while (object && object != above)
		object = object->parent;
	return object == above;
}

/* hwloc 2.14 shows a Slingshot card twice: as hsn0, with sockets, and cxi0. */
static bool has_rdma_alone(hwloc_obj_t device)
{
	return IS_OSDEV(device, OPENFABRICS) ||
	       strncmp(device->name, "cxi", 3) == 0;
}

/*
 * Returns how far a network device is from a GPU. Fewer levels up to what
 * contains both are nearer; then a device with sockets comes before one with
 * RDMA alone; then the faster link is nearer.
 */
static double find_cost(hwloc_obj_t gpu, hwloc_obj_t device)
{
	hwloc_obj_t above = gpu->parent, pci = device->parent;
	double steps = 0;

	while (above && !is_above(above, device)) {
		above = above->parent;
		steps++;
	}
	return steps * 1e6 + (has_rdma_alone(device) ? 1e5 : 0) -
	       (double)pci->attr->pcidev.linkspeed;
}

static void find_interface(hwloc_topology_t hwloc, hwloc_obj_t gpu, char *out,
			   size_t size)
{
	hwloc_obj_t device = NULL, best = NULL;
	double cost, least = 0;

	while ((device = hwloc_get_next_osdev(hwloc, device)) != NULL) {
		if ((!IS_OSDEV(device, NETWORK) &&
		     !IS_OSDEV(device, OPENFABRICS)) ||
		    !device->name || !device->parent ||
		    device->parent->type != HWLOC_OBJ_PCI_DEVICE)
			continue;
		cost = find_cost(gpu, device);
		if (!best || cost < least) {
			best = device;
			least = cost;
		}
	}
	if (best)
		copy_text(out, size, best->name, strlen(best->name));
}

static void copy_cpuset(struct ddp_cpuset *out, hwloc_const_bitmap_t bitmap)
{
	int cpu;

	ddp_cpuset_clear(out);
	for (cpu = hwloc_bitmap_first(bitmap); cpu >= 0 && cpu < DDP_CPU_MAX;
	     cpu = hwloc_bitmap_next(bitmap, cpu))
		ddp_cpuset_add(out, (uint32_t)cpu);
}

static int fill_gpu(hwloc_topology_t hwloc, hwloc_obj_t pci,
		    const struct ddp_cpuset *all, struct ddp_machine *machine,
		    struct ddp_gpu *gpu, struct ddp_error *error)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(hwloc, pci);
	const char *uuid = NULL;
	char bus_id[DDP_BUS_ID_SIZE];

	format_bus_id(pci, bus_id, sizeof(bus_id));
	if (ddp_machine_find_gpu(machine, bus_id))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "the topology has two GPUs with the bus "
				     "id %s", bus_id);
	memcpy(gpu->bus_id, bus_id, sizeof(bus_id));
	gpu->vendor = pci->attr->pcidev.vendor_id == PCI_AMD ?
		DDP_VENDOR_AMD : DDP_VENDOR_NVIDIA;
	find_model(pci, gpu->model, sizeof(gpu->model));
	if (find_infos(pci, "NVIDIAUUID", &uuid, 1) > 0 ||
	    find_infos(pci, "AMDUUID", &uuid, 1) > 0)
		copy_text(gpu->uuid, sizeof(gpu->uuid), uuid, strlen(uuid));
	find_interface(hwloc, pci, gpu->interface, sizeof(gpu->interface));
	copy_cpuset(&gpu->cpus, near->cpuset);
	ddp_cpuset_and(&gpu->cpus, &gpu->cpus, all);
	if (ddp_cpuset_empty(&gpu->cpus))
		gpu->cpus = *all;
	return 0;
}

static int fill_numas(hwloc_topology_t hwloc, struct ddp_machine *machine,
		      struct ddp_error *error)
{
	hwloc_obj_t numa = NULL;
	struct ddp_cpuset cpus;
	uint32_t i;

	for (i = 0; i < machine->cpu_count; i++)
		machine->cpus[i].numa = UINT16_MAX;
	while ((numa = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE,
						  numa)) != NULL) {
		if (numa->os_index >= DDP_CPU_MAX)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the topology has a NUMA node %u, which is "
				"above %d", numa->os_index, DDP_CPU_MAX - 1);
		copy_cpuset(&cpus, numa->cpuset);
		for (i = 0; i < machine->cpu_count; i++)
			if (ddp_cpuset_has(&cpus, machine->cpus[i].cpu) &&
			    numa->os_index < machine->cpus[i].numa)
				machine->cpus[i].numa =
					(uint16_t)numa->os_index;
	}
	for (i = 0; i < machine->cpu_count; i++)
		if (machine->cpus[i].numa == UINT16_MAX)
			machine->cpus[i].numa = 0;
	return 0;
}

/* A thread without a core counts as one: some virtual machines have those. */
static int fill_cpus(hwloc_topology_t hwloc, struct ddp_machine *machine,
		     struct ddp_error *error)
{
	int cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE);
	hwloc_obj_t pu = NULL, above;
	struct ddp_cpu *cpu = machine->cpus;
	struct ddp_cpuset seen = { { 0 } };

	for (; (pu = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PU, pu)) !=
	       NULL; cpu++) {
		if (pu->os_index >= DDP_CPU_MAX)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the topology has a CPU %u, which is above %d",
				pu->os_index, DDP_CPU_MAX - 1);
		if (ddp_cpuset_has(&seen, pu->os_index))
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the topology has two CPUs with the number %u",
				pu->os_index);
		ddp_cpuset_add(&seen, pu->os_index);
		cpu->cpu = (uint16_t)pu->os_index;
		above = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE,
						       pu);
		cpu->core = (uint16_t)(above ? above->logical_index :
			(unsigned int)cores + pu->logical_index);
		above = hwloc_get_ancestor_obj_by_type(hwloc,
						       HWLOC_OBJ_PACKAGE, pu);
		cpu->package = (uint16_t)(above ? above->logical_index : 0);
	}
	return fill_numas(hwloc, machine, error);
}

static struct ddp_machine *make_machine(hwloc_topology_t hwloc,
					const hwloc_obj_t *gpus,
					uint32_t gpu_count,
					struct ddp_error *error)
{
	int cpu_count = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU);
	const char *uuids[DDP_GPU_MAX];
	struct ddp_machine *machine;
	struct ddp_cpuset all;
	uint32_t parts = 0, count, i, k;

	if (cpu_count < 1 || cpu_count > DDP_CPU_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "the topology has %d "
			      "CPUs, not 1 to %d", cpu_count, DDP_CPU_MAX);
		return NULL;
	}
	machine = ddp_machine_create((uint32_t)cpu_count, gpu_count,
				     gpu_count * DDP_GPU_MAX);
	if (!machine) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	if (fill_cpus(hwloc, machine, error))
		goto failed;
	ddp_machine_cpus(machine, &all);
	for (i = 0; i < gpu_count; i++) {
		if (fill_gpu(hwloc, gpus[i], &all, machine, &machine->gpus[i],
			     error))
			goto failed;
		count = find_infos(gpus[i], "MIGUUID", uuids, DDP_GPU_MAX);
		for (k = 0; k < count && k < DDP_GPU_MAX; k++, parts++) {
			machine->parts[parts].gpu = i;
			copy_text(machine->parts[parts].uuid, DDP_UUID_SIZE,
				  uuids[k], strlen(uuids[k]));
		}
	}
	machine->part_count = parts;
	return machine;
failed:
	ddp_machine_destroy(machine);
	return NULL;
}

struct ddp_machine *ddp_topo_machine(const struct ddp_topo *topo,
				     struct ddp_error *error)
{
	struct ddp_machine *machine = NULL;
	uint32_t count;
	hwloc_obj_t *gpus = find_gpus(topo->hwloc, &count, error);

	if (gpus)
		machine = make_machine(topo->hwloc, gpus, count, error);
	free(gpus);
	return machine;
}

/* ---- what the kernel and the GPUs' drivers say, and what a process may use */

/* Copy the value of a line "name: value", unless it is another or too long. */
static bool read_value(const char *line, const char *name, char *value,
		       size_t size)
{
	size_t length = strlen(name);

	if (strncmp(line, name, length) != 0)
		return false;
	line += length;
	line += strspn(line, " \t");
	length = strcspn(line, "\n");
	if (length >= size)
		return false;
	memcpy(value, line, length);
	value[length] = '\0';
	return true;
}

static void read_nvidia(struct ddp_gpu *gpu, const char *root)
{
	char path[PATH_MAX], line[256], minor[16] = "";
	FILE *file;

	snprintf(path, sizeof(path),
		 "%s/proc/driver/nvidia/gpus/%s/information", root,
		 gpu->bus_id);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		read_value(line, "GPU UUID:", gpu->uuid, sizeof(gpu->uuid));
		read_value(line, "Device Minor:", minor, sizeof(minor));
	}
	fclose(file);
	if (strncmp(gpu->uuid, "GPU-", 4) != 0 || strchr(gpu->uuid, '?'))
		gpu->uuid[0] = '\0';
	if (minor[0] != '\0')
		snprintf(gpu->device, sizeof(gpu->device), "/dev/nvidia%s",
			 minor);
}

/* AMD's driver calls this a node: it is a GPU, or a part of one. */
struct kfd_node {
	char bus_id[DDP_BUS_ID_SIZE];
	char device[DDP_DEVICE_SIZE];
};

/* The number of a line "NAME NUMBER"; 0: there is none. */
static unsigned long read_property(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, name, length) == 0 && text[length] == ' ')
			return strtoul(text + length, NULL, 10);
	return 0;
}

/*
 * The GPUs among KFD's nodes, in its order, in which ROCm counts them. Returns how
 * many. The bus, device and function are the low bits of location_id; in the
 * highest ones is the part's number (kfd_topology.c in Linux).
 */
static uint32_t read_kfd(const char *root, struct kfd_node nodes[DDP_GPU_MAX])
{
	char path[PATH_MAX], *text;
	uint32_t count = 0, i;
	unsigned long at;

	for (i = 0; count < DDP_GPU_MAX; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd/topology/"
			 "nodes/%u/properties", root, i);
		if (access(path, F_OK) != 0)
			break;
		text = ddp_file_read(path);
		if (read_property(text, "simd_count") > 0) {
			at = read_property(text, "location_id");
			snprintf(nodes[count].bus_id, DDP_BUS_ID_SIZE,
				 "%04lx:%02lx:%02lx.%lx",
				 read_property(text, "domain"), at >> 8 & 0xff,
				 at >> 3 & 0x1f, at & 7);
			snprintf(nodes[count].device, DDP_DEVICE_SIZE,
				 "/dev/dri/renderD%lu",
				 read_property(text, "drm_render_minor"));
			count++;
		}
		free(text);
	}
	return count;
}

/*
 * Copies a GPU by AMD to each of its parts, as an MI300 has them in its mode CPX;
 * most GPUs are one. Returns how many there are, of which room are written.
 */
static uint32_t split_amd(const struct ddp_gpu *gpu,
			  const struct kfd_node *nodes, uint32_t count,
			  struct ddp_gpu *parts, uint32_t room)
{
	uint32_t found = 0, i;

	for (i = 0; i < count; i++) {
		if (strcmp(nodes[i].bus_id, gpu->bus_id) != 0)
			continue;
		if (found < room) {
			parts[found] = *gpu;
			memcpy(parts[found].device, nodes[i].device,
			       DDP_DEVICE_SIZE);
		}
		found++;
	}
	if (found > 0 || room == 0)
		return found;
	/* The driver hides a GPU that this process may not use. */
	*parts = *gpu;
	snprintf(parts->device, sizeof(parts->device),
		 "/dev/dri/by-path/pci-%s-render", gpu->bus_id);
	return 1;
}

void ddp_topo_drivers(struct ddp_machine *machine, const char *root)
{
	struct ddp_gpu *all = calloc(DDP_GPU_MAX + 1, sizeof(*all));
	struct kfd_node *nodes = calloc(DDP_GPU_MAX, sizeof(*nodes));
	uint32_t first[DDP_GPU_MAX] = { 0 }, nodes_count = 0, count = 0, i;

	for (i = 0; nodes && i < machine->gpu_count && !nodes_count; i++)
		if (machine->gpus[i].vendor == DDP_VENDOR_AMD)
			nodes_count = read_kfd(root, nodes);
	for (i = 0; all && i < machine->gpu_count && count < DDP_GPU_MAX;
	     i++) {
		first[i] = count;
		if (machine->gpus[i].vendor == DDP_VENDOR_AMD) {
			count += split_amd(&machine->gpus[i], nodes,
					   nodes_count, &all[count],
					   DDP_GPU_MAX - count);
			continue;
		}
		read_nvidia(&machine->gpus[i], root);
		all[count++] = machine->gpus[i];
	}
	free(nodes);
	if (!all)
		return;
	for (i = 0; i < machine->part_count; i++)
		machine->parts[i].gpu = first[machine->parts[i].gpu];
	free(machine->gpus);
	machine->gpus = all;
	machine->gpu_count = count < DDP_GPU_MAX ? count : DDP_GPU_MAX;
}

/* access() is refused by the device cgroup as well, without opening. */
void ddp_topo_reach(struct ddp_machine *machine, const char *root)
{
	char path[PATH_MAX];
	uint32_t i;

	for (i = 0; i < machine->gpu_count; i++) {
		struct ddp_gpu *gpu = &machine->gpus[i];

		snprintf(path, sizeof(path), "%s%s", root, gpu->device);
		gpu->reachable = gpu->device[0] != '\0' &&
				 access(path, R_OK | W_OK) == 0;
	}
}

/* The number in a file of a PCI device; 0: none. */
static unsigned int read_hex(const char *device, const char *name)
{
	char path[PATH_MAX], line[32];

	snprintf(path, sizeof(path), "%s/%s", device, name);
	ddp_file_read_line(path, line, sizeof(line));
	return (unsigned int)strtoul(line, NULL, 16);
}

bool ddp_topo_has_gpu(const char *root)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool any = false;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/sys/bus/pci/devices/*", root);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return false;
	for (i = 0; i < found.gl_pathc && !any; i++)
		any = is_gpu(read_hex(found.gl_pathv[i], "vendor"),
			     read_hex(found.gl_pathv[i], "class") >> 8);
	globfree(&found);
	return any;
}

/* Whether one of the files that a pattern names may be opened. */
static bool may_open(const char *pattern)
{
	glob_t found;
	bool any = false;
	size_t i;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return false;
	for (i = 0; i < found.gl_pathc && !any; i++)
		any = access(found.gl_pathv[i], R_OK | W_OK) == 0;
	globfree(&found);
	return any;
}

/*
 * Files of single devices: those of a whole driver, such as /dev/nvidiactl and
 * /dev/kfd, are open to tasks that were given none of its devices.
 */
bool ddp_topo_has_device(const char *root)
{
	static const char *const patterns[] = {
		"/dev/nvidia[0-9]*",
		"/dev/nvmap",		/* NVIDIA's Tegra */
		"/dev/dri/renderD*",	/* AMD, Intel */
		"/dev/dxg",		/* Windows' subsystem for Linux */
		"/dev/accel[0-9]*", "/dev/vfio/[0-9]*",	/* Google's TPU */
		"/dev/accel/accel*", "/dev/hl[0-9]*",	/* Intel's Gaudi */
		"/dev/davinci[0-9]*",	/* Huawei's Ascend */
		"/dev/neuron[0-9]*",	/* Amazon */
		"/dev/cambricon_dev*",
		"/dev/mtgpu*",		/* Moore Threads */
	};
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", root, patterns[i]);
		if (may_open(path))
			return true;
	}
	return false;
}

/* ---- the topology as XML, with the ranks in it, for lstopo */

static hwloc_obj_t find_pci(hwloc_topology_t hwloc, const char *wanted)
{
	char bus_id[DDP_BUS_ID_SIZE];
	hwloc_obj_t pci = NULL;

	while ((pci = hwloc_get_next_pcidev(hwloc, pci)) != NULL) {
		format_bus_id(pci, bus_id, sizeof(bus_id));
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
