/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares cuDNN's attention with our own kernels before a run, on random
 * values of the run's shape, with all sequences of a batch: which kernels cuDNN
 * takes depends on all of it.
 */
#include <math.h>
#include <stdlib.h>

#include "cuda/dnn.h"
#include "cuda/state.h"
#include "data/mix.h"
#include "util/error.h"

/*
 * The most that a tensor of one sequence may be apart, as a relative L2
 * distance in 2^-8 for bf16 and 2^-11 for fp16: each of both may be as far from
 * the exact values as tests/train/operators.h lets an operator be, twice
 * PyTorch's 0.9. Under emulation they are up to 1.2 apart.
 */
#define APART 3.6

struct results {
	void *out, *dqkv;
	float *lse;
};

struct check {
	struct device *device;
	int sequences, context, heads, width;
	size_t values;			/* of a sequence in out */
	char *memory;			/* NULL: only count bytes */
	size_t bytes;
	void *qkv, *dout, *work;
	struct results theirs, ours;
	float *piece;			/* the GPU's, of 3 values */
	float *host[2];			/* likewise of theirs and of ours */
};

/* The result in which they are farthest apart. */
struct distance {
	double most;
	const char *what;
	int sequence;
};

static void *take(struct check *check, size_t bytes)
{
	size_t at = check->bytes;

	check->bytes += (bytes + 255) / 256 * 256;
	return check->memory ? check->memory + at : NULL;
}

static void take_results(struct check *check, struct results *results)
{
	size_t count = (size_t)check->sequences * check->values;
	size_t sums = (size_t)check->sequences * (size_t)check->heads *
		      (size_t)check->context;

	results->out = take(check, 2 * count);
	results->dqkv = take(check, 6 * count);
	results->lse = take(check, sums * sizeof(float));
}

static void lay_out(struct check *check, char *memory)
{
	struct device *device = check->device;
	size_t count = (size_t)check->sequences * check->values;

	check->memory = memory;
	check->bytes = 0;
	check->qkv = take(check, 6 * count);
	check->dout = take(check, 2 * count);
	take_results(check, &check->theirs);
	take_results(check, &check->ours);
	check->work = take(check, device->table->work_bytes(&device->shape));
	check->piece = take(check, 3 * check->values * sizeof(float));
}

/* Multiples of 1/64 from -2 to below 2, which each type has exactly. */
static void fill(struct check *check, void *to, size_t pieces, uint64_t seed)
{
	struct device *device = check->device;
	size_t count = check->values;
	float *values = check->host[0];

	for (size_t piece = 0; piece < pieces; piece++) {
		for (size_t i = 0; i < count; i++) {
			uint64_t bits = mix_bits(seed + (piece * count + i) *
						 MIX_GOLDEN);

			values[i] = (float)(int)(bits & 255) / 64 - 2;
		}
		device->table->copy(device, QUEUE_COMPUTE, check->piece,
				    values, count * sizeof(float));
		device->table->cast(device, device->type,
				    value_at(device->type, to, piece * count),
				    DEVICE_FP32, check->piece, count);
	}
}

static void run(struct check *check, const struct results *to, bool cudnn)
{
	const struct op_attention forward = {
		check->sequences, check->context, check->heads, check->width,
		check->qkv, to->out, to->lse, check->work
	};
	const struct op_attention_backward backward = {
		check->sequences, check->context, check->heads, check->width,
		check->qkv, to->out, to->lse, check->dout, to->dqkv, check->work
	};

	if (cudnn) {
		cuda_dnn_attention(check->device, &forward);
		cuda_dnn_attention_backward(check->device, &backward);
	} else {
		cuda_attention(check->device, &forward);
		cuda_attention_backward(check->device, &backward);
	}
}

/*
 * Returns how far apart rows of `width` values are, from column `first` on. A
 * value counts for at least 2^-8: where a query sees one key, gradients are 0
 * but for rounding.
 */
static double measure(const struct check *check, size_t rows, size_t stride,
		      size_t first, size_t width)
{
	double apart = 0, all = 0;

	for (size_t row = 0; row < rows; row++)
		for (size_t i = first; i < first + width; i++) {
			double ours = check->host[1][row * stride + i];
			double by = check->host[0][row * stride + i] - ours;

			apart += by * by;
			all += ours * ours > 0x1p-16 ? ours * ours : 0x1p-16;
		}
	return sqrt(apart / all);
}

static void note(struct distance *distance, double apart, const char *what,
		 int sequence)
{
	if (!isnan(distance->most) && !(apart <= distance->most))
		*distance = (struct distance){ apart, what, sequence };
}

/* A piece of both, as fp32 on the host. */
static void fetch(struct check *check, enum device_type type,
		  const void *theirs, const void *ours, size_t first,
		  size_t count)
{
	struct device *device = check->device;
	const void *from[] = { theirs, ours };

	for (int i = 0; i < 2; i++) {
		device->table->cast(device, DEVICE_FP32, check->piece, type,
				    value_at(type, from[i], first), count);
		device_fetch(device, check->host[i], check->piece,
			     count * sizeof(float));
	}
}

static struct distance compare(struct check *check)
{
	static const char *const parts[] = {
		"gradient of q", "gradient of k", "gradient of v"
	};
	const struct results *theirs = &check->theirs, *ours = &check->ours;
	enum device_type type = check->device->type;
	size_t context = (size_t)check->context;
	size_t width = (size_t)check->width;
	size_t sums = (size_t)check->heads * context;
	struct distance distance = { 0 };

	for (int s = 0; s < check->sequences; s++) {
		size_t at = (size_t)s;

		fetch(check, type, theirs->out, ours->out, at * check->values,
		      check->values);
		note(&distance, measure(check, context, width, 0, width),
		     "output", s);
		fetch(check, DEVICE_FP32, theirs->lse, ours->lse, at * sums,
		      sums);
		note(&distance, measure(check, 1, sums, 0, sums),
		     "log of sums", s);
		fetch(check, type, theirs->dqkv, ours->dqkv,
		      at * 3 * check->values, 3 * check->values);
		for (size_t i = 0; i < 3; i++)
			note(&distance, measure(check, context, 3 * width,
						i * width, width),
			     parts[i], s);
	}
	return distance;
}

static int compare_all(struct check *check, const char *library,
		       struct ddp_error *error)
{
	struct device *device = check->device;
	bool brain = device->type == DEVICE_BF16;
	double most = APART * (brain ? 0x1p-8 : 0x1p-11);
	struct distance distance;

	fill(check, check->qkv, 3 * (size_t)check->sequences, 1);
	fill(check, check->dout, (size_t)check->sequences, 2);
	run(check, &check->theirs, true);
	run(check, &check->ours, false);
	distance = compare(check);
	if (device->table->check(device, error) < 0)
		return -1;
	if (!(distance.most <= most))
		return ddp_error_set(error, DDP_ERROR_CUDA, "--attention "
				     "cudnn: in sequence %d of random values "
				     "the %s of %s differs by %.2g of its size "
				     "from that of ddp-train's own kernels, "
				     "and rounding to %s explains %.2g: choose "
				     "--attention own", distance.sequence,
				     distance.what, library, distance.most,
				     brain ? "bf16" : "fp16", most);
	run(check, &check->ours, true);
	distance = compare(check);
	if (device->table->check(device, error) < 0)
		return -1;
	if (distance.most != 0)
		return ddp_error_set(error, DDP_ERROR_CUDA, "--attention "
				     "cudnn: the %s of %s has other bits when "
				     "it is computed again: choose --attention "
				     "own", distance.what, library);
	return 0;
}

int dnn_check(struct device *device, const char *library, size_t bytes,
	      struct ddp_error *error)
{
	const struct device_shape *shape = &device->shape;
	struct check check = {
		.device = device, .sequences = shape->rows / shape->context,
		.context = shape->context, .heads = shape->heads,
		.width = shape->width,
		.values = (size_t)shape->context * (size_t)shape->width
	};
	char *memory = device->arena[SPACE_DEVICE];
	int result = -1;

	lay_out(&check, NULL);
	if (check.bytes > bytes)
		memory = device->table->alloc(device, check.bytes, error);
	if (!memory)
		return -1;
	lay_out(&check, memory);
	for (int i = 0; i < 2; i++)
		check.host[i] = malloc(3 * check.values * sizeof(float));
	if (check.host[0] && check.host[1])
		result = compare_all(&check, library, error);
	else
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory of the host "
			      "is left: choose a smaller model");
	free(check.host[0]);
	free(check.host[1]);
	cuda_zero(device, memory, check.bytes);
	if (result == 0)
		result = device->table->check(device, error);
	return result;
}
