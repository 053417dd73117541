/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU as a device: to enqueue is to run, and an event is complete. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "layout/error.h"

/* How much of each arena to unmap. */
struct cpu {
	size_t bytes[SPACES];
};

static void cpu_close(struct device *device)
{
	struct cpu *cpu = device->state;

	for (int space = 0; cpu && space < SPACES; space++) {
		if (device->arena[space])
			munmap(device->arena[space], cpu->bytes[space]);
		device->arena[space] = NULL;
	}
	free(cpu);
	device->state = NULL;
}

/* Mapped, not allocated: a page that is never touched costs nothing. */
static int map_space(struct device *device, int space, size_t bytes,
		     struct ddp_error *error)
{
	struct cpu *cpu = device->state;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no %zu MiB of "
				     "memory for the model (%s); choose a "
				     "smaller --batch or model",
				     (bytes >> 20) + 1, strerror(errno));
	madvise(memory, bytes, MADV_HUGEPAGE);	/* fewer misses of the TLB */
	device->arena[space] = memory;
	cpu->bytes[space] = bytes;
	return 0;
}

static int cpu_open(struct device *device, const size_t *bytes, int threads,
		    struct ddp_error *error)
{
	device->state = calloc(1, sizeof(struct cpu));
	memset(device->arena, 0, sizeof(device->arena));
	if (!device->state)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory");
	for (int space = 0; space < SPACES; space++) {
		if (bytes[space] > 0 &&
		    map_space(device, space, bytes[space], error) < 0) {
			cpu_close(device);
			return -1;
		}
	}
	matmul_set_threads(threads);
	return 0;
}

static size_t cpu_work_bytes(const struct device_shape *shape)
{
	size_t attention = cpu_attention_work(shape);
	size_t classifier = cpu_classifier_work(shape);

	return attention > classifier ? attention : classifier;
}

static int cpu_check(struct device *device, struct ddp_error *error)
{
	(void)device;
	return matmul_check(error);
}

static void cpu_event(struct device *device, int event,
		      enum device_queue queue)
{
	(void)device;
	(void)event;
	(void)queue;
}

static bool cpu_query(struct device *device, int event)
{
	(void)device;
	(void)event;
	return true;
}

static void cpu_copy(struct device *device, enum device_queue queue, void *to,
		     const void *from, size_t bytes)
{
	(void)device;
	(void)queue;
	memcpy(to, from, bytes);
}

const struct device_table device_cpu = {
	.abi = DEVICE_ABI,
	.name = "cpu",
	.open = cpu_open,
	.close = cpu_close,
	.work_bytes = cpu_work_bytes,
	.check = cpu_check,
	.record = cpu_event,
	.wait = cpu_event,
	.query = cpu_query,
	.copy = cpu_copy,
	.embed = cpu_embed,
	.embed_backward = cpu_embed_backward,
	.norm = cpu_norm,
	.norm_backward = cpu_norm_backward,
	.matmul = cpu_matmul,
	.matmul_backward = cpu_matmul_backward,
	.gelu = cpu_gelu,
	.attention = cpu_attention,
	.attention_backward = cpu_attention_backward,
	.classifier = cpu_classifier,
	.adamw = cpu_adamw,
	.sgd = cpu_sgd,
	.sum_squares = cpu_sum_squares,
	.scale = cpu_scale,
	.add = cpu_add,
	.fill = cpu_fill,
	.cast = cpu_cast
};
