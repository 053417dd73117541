/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU as a device: enqueued work runs at once, and events are complete. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "util/clock.h"
#include "util/error.h"

/* A header before each piece of memory that alloc() gave, to free it. */
struct more {
	struct more *next;
	size_t bytes;			/* of both */
};

static void close_arenas(struct device *device)
{
	struct cpu *cpu = device->state;

	for (int space = 0; cpu && space < SPACES; space++) {
		if (device->arena[space])
			munmap(device->arena[space], cpu->bytes[space]);
		device->arena[space] = NULL;
	}
	while (cpu && cpu->more) {
		struct more *more = cpu->more;

		cpu->more = more->next;
		munmap(more, more->bytes);
	}
	if (cpu)
		matmul_destroy(cpu->engine);
	free(cpu);
	device->state = NULL;
}

/* mmap() rather than malloc(): a page that is never used costs nothing. */
static void *map_bytes(size_t bytes, struct ddp_error *error)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "%zu MiB of memory for "
			      "the model cannot be had: %s; choose a smaller "
			      "--batch or model", (bytes >> 20) + 1,
			      strerror(errno));
		return NULL;
	}
	madvise(memory, bytes, MADV_HUGEPAGE);	/* fewer misses of the TLB */
	return memory;
}

static int map_space(struct device *device, int space, size_t bytes,
		     struct ddp_error *error)
{
	struct cpu *cpu = device->state;

	device->arena[space] = map_bytes(bytes, error);
	if (!device->arena[space])
		return -1;
	cpu->bytes[space] = bytes;
	return 0;
}

static void *map_more(struct device *device, size_t bytes,
		      struct ddp_error *error)
{
	struct cpu *cpu = device->state;
	struct more *more = map_bytes(DEVICE_ALIGN + bytes, error);

	if (!more)
		return NULL;
	*more = (struct more){ cpu->more, DEVICE_ALIGN + bytes };
	cpu->more = more;
	return (char *)more + DEVICE_ALIGN;
}

static int accept_shape(const struct device_shape *shape,
			struct ddp_error *error)
{
	(void)shape;
	(void)error;
	return 0;
}

static int open_arenas(struct device *device, enum device_type type,
		       const size_t *bytes, int threads,
		       struct ddp_error *error)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));

	device->type = type;
	device->state = cpu;
	memset(device->arena, 0, sizeof(device->arena));
	if (!cpu)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "the model; choose a smaller one");
	cpu->engine = matmul_create(type, threads, error);
	for (int space = 0; cpu->engine && space < SPACES; space++) {
		if (bytes[space] > 0 &&
		    map_space(device, space, bytes[space], error) < 0) {
			close_arenas(device);
			return -1;
		}
	}
	if (cpu->engine)
		return 0;
	close_arenas(device);
	return -1;
}

static const char *explain_products(const struct device *device)
{
	const struct cpu *cpu = device->state;

	return matmul_explain(cpu->engine);
}

static size_t count_work_bytes(const struct device_shape *shape)
{
	const size_t counts[] = {
		cpu_count_norm_work(shape), cpu_count_attention_work(shape),
		cpu_count_classifier_work(shape)
	};
	size_t most = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		most = counts[i] > most ? counts[i] : most;
	return most;
}

static int check_products(struct device *device, struct ddp_error *error)
{
	const struct cpu *cpu = device->state;

	return matmul_check(cpu->engine, error);
}

static void record_event(struct device *device, int event,
			 enum device_queue queue)
{
	struct cpu *cpu = device->state;

	(void)queue;
	cpu->recorded[event] = ddp_clock_seconds();
}

static double measure_events(struct device *device, int from, int to)
{
	const struct cpu *cpu = device->state;

	return cpu->recorded[to] - cpu->recorded[from];
}

static void ignore_event(struct device *device, int event,
			 enum device_queue queue)
{
	(void)device;
	(void)event;
	(void)queue;
}

static void *find_no_stream(struct device *device, enum device_queue queue)
{
	(void)device;
	(void)queue;
	return NULL;
}

static int query_event(struct device *device, int event)
{
	(void)event;
	return check_products(device, NULL) < 0 ? -1 : 1;
}

static void copy_bytes(struct device *device, enum device_queue queue, void *to,
		       const void *from, size_t bytes)
{
	(void)device;
	(void)queue;
	memcpy(to, from, bytes);
}

static void zero_bytes(struct device *device, void *at, size_t bytes)
{
	(void)device;
	memset(at, 0, bytes);
}

const struct device_table device_cpu = {
	.abi = DEVICE_ABI,
	.name = "cpu",
	.check_shape = accept_shape,
	.open = open_arenas,
	.close = close_arenas,
	.alloc = map_more,
	.note = explain_products,
	.work_bytes = count_work_bytes,
	.own_bytes = matmul_count_bytes,
	.check = check_products,
	.record = record_event,
	.wait = ignore_event,
	.query = query_event,
	.elapsed = measure_events,
	.stream = find_no_stream,
	.copy = copy_bytes,
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
	.sum_squares = cpu_sum_squares,
	.step = cpu_step,
	.adamw = cpu_adamw,
	.sgd = cpu_sgd,
	.round = cpu_round,
	.add = cpu_add,
	.zero = zero_bytes,
	.cast = cpu_cast
};
