/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A FAKE module for GPUs: the CPU's operators under the name of cuda, in a
 * ddp_cuda.so. With tests/fakes it shows what ddp-train does with a module and
 * NCCL, but not what a GPU does: its queues run at once.
 *
 *   FAKE_DEVICE=WHAT          after some looks at events: "agree": what ranks
 *                             agree on comes no more, or "bucket", what they
 *                             sum, and all after it; "hang": the process does
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "nccl/ranks.h"
#include "step/sum_tree.h"
#include "util/error.h"

enum { MOST_PARTS = 64, LOOKS = 10 };

struct device_table ddp_device_table;

static void *allocate(struct device *device, size_t bytes,
		      struct ddp_error *error)
{
	size_t lines = (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN;
	void *memory = aligned_alloc(DEVICE_ALIGN, lines * DEVICE_ALIGN);

	(void)device;
	if (memory)
		memset(memory, 0, bytes);
	else
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	return memory;
}

static void *find_stream(struct device *device, enum device_queue queue)
{
	static long streams[QUEUES][8];	/* zeros: none of an emulated CUDA */

	(void)device;
	return streams[queue];
}

static void fold_parts(struct device *device, enum device_queue queue,
		       float *to, const float *from, int parts, size_t stride,
		       size_t count)
{
	const void *sources[MOST_PARTS];

	(void)device, (void)queue;
	if (parts > MOST_PARTS)
		abort();
	for (int part = 0; part < parts; part++)
		sources[part] = from + (size_t)part * stride;
	fold_tree(DEVICE_FP32, sources, parts, to, count);
}

static bool is_ready(int event)
{
	return event >= TICKET_EVENTS &&
	       (event - TICKET_EVENTS) % TICKET_SET == TICKET_READY;
}

static int query_event(struct device *device, int event)
{
	const char *fault = getenv("FAKE_DEVICE");
	static int looks;

	if (fault && strcmp(fault, "bucket") == 0 && ++looks > LOOKS)
		return is_ready(event);
	if (!fault || event != AGREE_EVENT || ++looks < LOOKS)
		return device_cpu.query(device, event);
	while (strcmp(fault, "hang") == 0)
		pause();
	return strcmp(fault, "agree") != 0;
}

__attribute__((constructor)) static void fill_table(void)
{
	ddp_device_table = device_cpu;
	ddp_device_table.name = "cuda";
	ddp_device_table.alloc = allocate;
	ddp_device_table.stream = find_stream;
	ddp_device_table.fold = fold_parts;
	ddp_device_table.query = query_event;
}
