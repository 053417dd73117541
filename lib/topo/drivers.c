/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads what the kernel and the GPUs' drivers say of them, and which of them a
 * process may use.
 */
#define _GNU_SOURCE
#include "topo/topo.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "topo/hwloc_topo.h"
#include "util/file.h"

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

void ddp_topo_drivers(struct ddp_machine *machine, const char *root)
{
	uint32_t i;

	for (i = 0; i < machine->gpu_count; i++) {
		struct ddp_gpu *gpu = &machine->gpus[i];

		if (gpu->vendor == DDP_VENDOR_NVIDIA)
			read_nvidia(gpu, root);
		else
			snprintf(gpu->device, sizeof(gpu->device),
				 "/dev/dri/by-path/pci-%s-render",
				 gpu->bus_id);
	}
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
		any = ddp_topo_is_gpu(read_hex(found.gl_pathv[i], "vendor"),
				      read_hex(found.gl_pathv[i], "class") >>
				      8);
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
