/* SPDX-License-Identifier: BSD-3-Clause */
/* What this rank has for a preflight: versions and GPUs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "config.h"
#include "ddp.h"
#include "device.h"
#include "layout/report.h"
#include "layout/text.h"
#include "nccl/library.h"
#include "preflight.h"

#define DRIVER_FILE "/sys/module/nvidia/version"
#define LIBDDP_FILE "libddp.so.0"

/* How many GPUs a list such as "0,1" or "MIG-...,MIG-..." names. */
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
 * By the plugin's own record: a start-up file or a wrapper of one node may have
 * changed CUDA_VISIBLE_DEVICES since.
 */
static uint32_t count_given(void)
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

static void read_driver(char *version, size_t size)
{
	FILE *file = fopen(DRIVER_FILE, "re");
	char line[FACT_VERSION] = "";

	if (file && fgets(line, sizeof(line), file))
		line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
	snprintf(version, size, "%s", line);
}

/* ddp-bench's own, and that of the library which other programs load. */
static void read_libddp(char *version, size_t size)
{
	void *library = dlopen(LIBDDP_FILE, RTLD_LAZY | RTLD_LOCAL);
	const char *(*get)(void) = NULL;

	if (library)
		*(void **)&get = dlsym(library, "ddp_version");
	snprintf(version, size, DDP_VERSION " (%s%s)",
		 get ? LIBDDP_FILE " " : "no " LIBDDP_FILE, get ? get() : "");
	if (library)
		dlclose(library);
}

static void read_gpus(struct facts *facts)
{
	struct ddp_error error = { 0 };
	int cuda = 0, nccl = 0;

	read_driver(facts->versions[DRIVER], FACT_VERSION);
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

void facts_gather(struct facts *facts, const struct backend *mpi)
{
	*facts = (struct facts){ .gpus_given = count_given() };
	if (facts->gpus_given > 0)
		read_gpus(facts);
	read_libddp(facts->versions[LIBDDP], FACT_VERSION);
	if (mpi->describe)
		mpi->describe(facts->versions[MPI], FACT_VERSION);
	if (getrandom(&facts->nonce, sizeof(facts->nonce), 0) < 0)
		facts->nonce = 0;
	for (int what = 0; what < VERSIONS; what++)
		ddp_text_quote(facts->versions[what]);
}
