/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU as a device: enqueued work runs at once, and events are complete.
 * Also the operators on parameters and gradients, element by element.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "fold.h"
#include "layout/error.h"

/* How much of each arena to unmap. */
struct cpu {
	size_t bytes[SPACES];
};

static void close_arenas(struct device *device)
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

/* mmap() rather than malloc(): a page that is never used costs nothing. */
static int map_space(struct device *device, int space, size_t bytes,
		     struct ddp_error *error)
{
	struct cpu *cpu = device->state;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no %zu MiB of "
				     "memory for the model: %s; choose a "
				     "smaller --batch or model",
				     (bytes >> 20) + 1, strerror(errno));
	madvise(memory, bytes, MADV_HUGEPAGE);	/* fewer misses of the TLB */
	device->arena[space] = memory;
	cpu->bytes[space] = bytes;
	return 0;
}

static int open_arenas(struct device *device, const size_t *bytes, int threads,
		       struct ddp_error *error)
{
	device->state = calloc(1, sizeof(struct cpu));
	memset(device->arena, 0, sizeof(device->arena));
	if (!device->state)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "the model; choose a smaller one");
	for (int space = 0; space < SPACES; space++) {
		if (bytes[space] > 0 &&
		    map_space(device, space, bytes[space], error) < 0) {
			close_arenas(device);
			return -1;
		}
	}
	matmul_set_threads(threads);
	return 0;
}

static size_t count_work_bytes(const struct device_shape *shape)
{
	size_t attention = cpu_count_attention_work(shape);
	size_t classifier = cpu_count_classifier_work(shape);

	return attention > classifier ? attention : classifier;
}

static int check_products(struct device *device, struct ddp_error *error)
{
	(void)device;
	return matmul_check(error);
}

static void ignore_event(struct device *device, int event,
			 enum device_queue queue)
{
	(void)device;
	(void)event;
	(void)queue;
}

static bool query_event(struct device *device, int event)
{
	(void)device;
	(void)event;
	return true;
}

static void copy_bytes(struct device *device, enum device_queue queue, void *to,
		       const void *from, size_t bytes)
{
	(void)device;
	(void)queue;
	memcpy(to, from, bytes);
}

KERNEL static void update_adamw(struct device *device,
				const struct op_adamw *op)
{
	const float keep = (float)(1 - op->lr * op->decay);
	const float scale = (float)op->scale, eps = (float)op->eps;
	const float rest1 = (float)(1 - op->beta1);
	const float beta2 = (float)op->beta2, rest2 = (float)(1 - op->beta2);
	const float step = (float)(op->lr / op->correction1);
	const float correction2 = (float)op->correction2;
	const float *grad = op->grad;
	float *param = op->param, *m = op->m, *v = op->v;
	size_t count = op->count;

	(void)device;
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * scale;
		float mean = m[i] + rest1 * (g - m[i]);
		float square = beta2 * v[i] + rest2 * g * g;

		m[i] = mean;
		v[i] = square;
		param[i] = param[i] * keep -
			   step * mean / (sqrtf(square / correction2) + eps);
	}
}

KERNEL static void update_sgd(struct device *device, const struct op_sgd *op)
{
	const float lr = (float)op->lr, scale = (float)op->scale;
	const float decay = (float)op->decay, momentum = (float)op->momentum;
	const float *grad = op->grad;
	float *param = op->param, *v = op->v;
	size_t count = op->count;

	(void)device;
	if (!v) {
#pragma omp simd
		for (size_t i = 0; i < count; i++)
			param[i] -= lr * (grad[i] * scale + decay * param[i]);
		return;
	}
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		float g = grad[i] * scale + decay * param[i];

		v[i] = momentum * v[i] + g;
		param[i] -= lr * v[i];
	}
}

KERNEL static double sum_block_squares(const float *x, size_t count)
{
	double sum[LANES] = { 0 };
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
#pragma omp simd
		for (int lane = 0; lane < LANES; lane++)
			sum[lane] += (double)x[i + lane] * x[i + lane];
	for (int lane = 0; i < count; i++, lane++)
		sum[lane] += (double)x[i] * x[i];
	for (int lane = 1; lane < LANES; lane++)
		sum[0] += sum[lane];
	return sum[0];
}

static void sum_squares(struct device *device,
			const struct op_sum_squares *op)
{
	(void)device;
	for (size_t begin = 0; begin < op->count; begin += DEVICE_BLOCK) {
		size_t rest = op->count - begin;

		op->blocks[begin / DEVICE_BLOCK] =
			sum_block_squares(op->x + begin, rest < DEVICE_BLOCK ?
					  rest : DEVICE_BLOCK);
	}
}

KERNEL static void scale_values(struct device *device, float *x, double factor,
				size_t count)
{
	const float single = (float)factor;

	(void)device;
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		x[i] *= single;
}

static void add_values(struct device *device, float *x, const float *y,
		       size_t count)
{
	(void)device;
	fold_pair(x, y, x, count);
}

KERNEL static void fill_values(struct device *device, float *x, float value,
			       size_t count)
{
	(void)device;
#pragma omp simd
	for (size_t i = 0; i < count; i++)
		x[i] = value;
}

KERNEL static void round_to_bfloat(const float *x, uint16_t *y, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		uint32_t bits, even;

		memcpy(&bits, &x[i], sizeof(bits));
		even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
		/* Rounding could make a NaN infinite: cut it, and set the
		   quiet bit. */
		y[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ?
				  bits >> 16 | 0x40 : even);
	}
}

KERNEL static void widen_bfloat(const uint16_t *x, float *y, size_t count)
{
#pragma omp simd
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = (uint32_t)x[i] << 16;

		memcpy(&y[i], &bits, sizeof(bits));
	}
}

static void cast_values(struct device *device, enum device_cast cast, void *to,
			const void *from, size_t count)
{
	(void)device;
	if (cast == FLOAT_TO_BFLOAT)
		round_to_bfloat(from, to, count);
	else
		widen_bfloat(from, to, count);
}

const struct device_table device_cpu = {
	.abi = DEVICE_ABI,
	.name = "cpu",
	.open = open_arenas,
	.close = close_arenas,
	.work_bytes = count_work_bytes,
	.check = check_products,
	.record = ignore_event,
	.wait = ignore_event,
	.query = query_event,
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
	.adamw = update_adamw,
	.sgd = update_sgd,
	.sum_squares = sum_squares,
	.scale = scale_values,
	.add = add_values,
	.fill = fill_values,
	.cast = cast_values
};
