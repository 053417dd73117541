/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers what this rank has: versions, and GPUs that work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "ddp.h"
#include "device.h"
#include "nccl/library.h"
#include "place/report.h"
#include "preflight.h"
#include "util/file.h"
#include "util/interface.h"
#include "util/text.h"

enum { BLOCK = 1 << 20, COPIES = 64 };

#define DRIVER_FILE "/sys/module/nvidia/version"
#define LIBDDP_FILE "libddp.so.0"

/* Returns how many GPUs a list such as "0,1" or "MIG-...,MIG-..." names. */
static uint32_t count_list(const char *list)
{
	uint32_t count = 0;

	if (!list || strcmp(list, "-1") == 0 || strcmp(list, "NoDevFiles") == 0)
		return 0;
	while (*list != '\0') {
		list += strspn(list, ",");
		count += *list != '\0';
		list += strcspn(list, ",");
	}
	return count;
}

/*
 * The plugin's own record comes first: a start-up file or a wrapper of one node
 * may have changed CUDA_VISIBLE_DEVICES since.
 */
uint32_t facts_count_given(void)
{
	const char *record = getenv(DDP_PLACEMENT), *list;
	struct ddp_row row = { 0 };
	uint32_t count = 0;

	if (record && ddp_row_parse(record, &row, NULL) == 0) {
		list = strchr(row.visible, '=');
		count = count_list(list ? list + 1 : NULL);
		if (count < row.gpu_count)
			count = row.gpu_count;
	}
	ddp_row_clear(&row);
	return count > 0 ? count : count_list(getenv("CUDA_VISIBLE_DEVICES"));
}

/* ddp-bench's own, and that of the library which other programs load. */
static void read_libddp(char *version, size_t size)
{
	void *library = dlopen(LIBDDP_FILE, RTLD_LAZY | RTLD_LOCAL);
	const char *(*get)(void) = NULL;

	if (library)
		*(void **)&get = dlsym(library, "ddp_version");
	if (get)
		snprintf(version, size, DDP_VERSION " (" LIBDDP_FILE " %s)",
			 get());
	else
		snprintf(version, size, DDP_VERSION " (" LIBDDP_FILE
			 " is not installed)");
	if (library)
		dlclose(library);
}

static void count_gpus(struct facts *facts)
{
	struct ddp_error error = { 0 };
	int cuda = 0, nccl = 0;

	ddp_file_read_line(DRIVER_FILE, facts->versions[DRIVER], FACT_VERSION);
	if (device_count(&facts->gpus_seen, &cuda, &error) == 0)
		snprintf(facts->versions[CUDA], FACT_VERSION, "%d.%d",
			 cuda / 1000, cuda % 1000 / 10);
	else
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
	if (ddp_nccl_library(&nccl, &error))
		snprintf(facts->versions[NCCL], FACT_VERSION, "%d.%d.%d",
			 nccl / 10000, nccl / 100 % 100, nccl % 100);
	else if (facts->gpu_error[0] == '\0')
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
}

/* Check that what comes back from the GPU's memory is what went there. */
static int use_gpu(unsigned char *block, unsigned char *back,
		   struct ddp_error *error)
{
	void *memory = device_reserve(BLOCK, error);
	int rc = memory ? 0 : -1;

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = (unsigned char)(i * 167 >> 4);
	for (int i = 0; i < COPIES && rc == 0; i++)
		rc = device_put(memory, block, BLOCK, error);
	if (rc == 0)
		rc = device_get(back, memory, BLOCK, error);
	if (rc == 0 && memcmp(block, back, BLOCK) != 0)
		rc = ddp_error_set(error, DDP_ERROR_CUDA, "what is read from "
				   "its memory is not what was written; look "
				   "for 'Xid' in dmesg");
	if (memory)
		device_release(memory);
	return rc;
}

/*
 * An idle GPU lowers the speed of its link, and raises it to copy: so copy for
 * a while, compare what came back, and then read the link.
 */
static void try_gpu(const struct preflight *preflight, struct facts *facts)
{
	struct ddp_error error = { 0 };
	unsigned char *blocks = malloc(2 * BLOCK);
	char device[48] = "";
	int rc = -1;

	if (!blocks)
		ddp_error_set(&error, DDP_ERROR_SYSTEM, "out of memory");
	else
		rc = device_open(preflight->local_rank,
				 preflight->options->share_gpu, device,
				 sizeof(device), &error);
	if (rc == 0) {
		sscanf(device, "%31s", facts->bus_id);
		rc = use_gpu(blocks, blocks + BLOCK, &error);
		link_read(facts);
		device_close();
	}
	if (rc < 0)
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
	free(blocks);
}

void facts_gather(const struct preflight *preflight, struct facts *facts)
{
	*facts = (struct facts){ .gpus_given = facts_count_given() };
	if (facts->gpus_given > 0)
		count_gpus(facts);
	if (facts->gpus_given > 0 && facts->gpus_seen >= facts->gpus_given &&
	    facts->gpu_error[0] == '\0')
		try_gpu(preflight, facts);
	ddp_interface_find_flaw(getenv("GLOO_SOCKET_IFNAME"),
				getenv("NCCL_SOCKET_IFNAME"),
				facts->interface);
	ddp_text_quote(facts->interface);
	read_libddp(facts->versions[LIBDDP], FACT_VERSION);
	if (backend_mpi.describe)
		backend_mpi.describe(facts->versions[MPI], FACT_VERSION);
}
