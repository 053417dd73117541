/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Begins: the ranks allocate what they share, check how it is summed, and get
 * the parameters of rank 0.
 */
#include <stdlib.h>

#include "collective.h"
#include "data/llmc.h"
#include "ddp.h"
#include "model.h"
#include "run/world.h"
#include "step/sum_tree.h"
#include "step/trainer.h"
#include "util/error.h"

enum { PART = 1024 };		/* values on the stack */

/* ---- the memory that ranks share */

/* Bytes of gradients and parameters, up to whole lines: sums may follow. */
static size_t count_values_bytes(const struct trainer *trainer)
{
	const struct options *options = trainer->options;
	size_t bytes = trainer_count_values(trainer) *
		       (device_type_bytes(options->grad_dtype) +
			device_type_bytes(options->dtype));

	return (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

size_t trainer_count_buffer(const struct trainer *trainer)
{
	return count_values_bytes(trainer) +
	       trainer_count_sums(trainer) * sizeof(*trainer->blocks);
}

/* The most bytes of one start(): of a bucket, or of the sums. */
static size_t count_largest(const struct trainer *trainer)
{
	size_t bucket = buckets_find_largest(&trainer->buckets) *
			device_type_bytes(trainer->options->grad_dtype);
	size_t sums = trainer_count_sums(trainer) * sizeof(*trainer->blocks);

	return bucket > sums ? bucket : sums;
}

static bool has_several_gpus(const struct trainer *trainer)
{
	return trainer->device.table != &device_cpu &&
	       trainer->collective->size > 1;
}

size_t trainer_count_received(const struct trainer *trainer)
{
	size_t ranks = (size_t)trainer->collective->size, begin;
	size_t most = count_largest(trainer) / sizeof(float);

	if (!trainer->options->deterministic || !has_several_gpus(trainer))
		return 0;
	return collective_find_slice(most, 0, (int)ranks, &begin) * ranks *
	       sizeof(float);
}

size_t trainer_count_exchanged(const struct trainer *trainer)
{
	size_t bytes = trainer_count_buffer(trainer) +
		       trainer_count_received(trainer);

	if (has_several_gpus(trainer))
		bytes += COLLECTIVE_RECORD * (size_t)trainer->collective->size;
	return bytes;
}

size_t trainer_count_own(const struct trainer *trainer)
{
	const struct device_table *table = trainer->device.table;
	size_t bytes = table->own_bytes(trainer->options->dtype);

	for (int space = 0; space < SPACES; space++)
		bytes += trainer->bytes[space];
	return bytes;
}

/* ---- a sum that is known */

/*
 * One rank has a number up to 119 at each place, and the next one 64. So their
 * sum is exact in any order, in 16 bits and for any number of ranks. The
 * numbers do not repeat at the distance of a slice, so that values that change
 * places are found.
 */
static float make_number(size_t i)
{
	return (float)(1 + i % 61 + i / 61 % 59);
}

static float make_value(const struct collective *collective, size_t i)
{
	uint32_t size = (uint32_t)collective->size;
	uint32_t rank = (uint32_t)collective->rank;
	uint32_t first = (uint32_t)(i / 7) % size;

	if (rank == first)
		return make_number(i);
	return rank == (first + 1) % size ? 64 : 0;
}

/* Write at most PIECE values of the pattern to the gradient. */
static void write_piece(struct trainer *trainer, size_t begin, size_t count)
{
	enum device_type type = trainer->options->grad_dtype;
	size_t bytes = device_type_bytes(type);
	struct device *device = &trainer->device;
	char *piece = (char *)trainer->piece;
	float values[PART];

	for (size_t i = 0; i < count; i += PART) {
		size_t part = count - i < PART ? count - i : PART;

		for (size_t j = 0; j < part; j++)
			values[j] = make_value(trainer->collective,
					       begin + i + j);
		half_round(type, values, piece + i * bytes, part);
	}
	device->table->copy(device, QUEUE_COMPUTE, (char *)trainer->grad +
			    begin * bytes, piece, count * bytes);
}

static int compare_piece(struct trainer *trainer, size_t begin, size_t count,
			 struct ddp_error *error)
{
	enum device_type type = trainer->options->grad_dtype;
	size_t bytes = device_type_bytes(type);
	float other = trainer->collective->size > 1 ? 64 : 0;
	char *piece = (char *)trainer->piece;

	if (trainer_fetch(trainer, piece, (char *)trainer->grad +
			  begin * bytes, count * bytes) < 0)
		return trainer->device.table->check(&trainer->device, error);
	for (size_t i = 0; i < count; i++) {
		float want = make_number(begin + i) + other, had;

		half_widen(type, piece + i * bytes, &had, 1);
		if (had != want)
			return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s "
				"gave %g at %zu where %g is right; test the "
				"network with ddp-bench",
				trainer->buckets.sharded ? "a reduce-scatter "
				"and an all-gather" : "an all-reduce",
				(double)had, begin + i, (double)want);
	}
	return 0;
}

/* Sums the first values of the gradient. */
static void sum_values(struct trainer *trainer, enum collective_op op,
		       size_t count)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	uint64_t ticket;

	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, op, 0, count,
					  trainer->options->grad_dtype, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
}

/*
 * Sums a pattern whose sum is exact, as gradients are, and compares it; mine is
 * what went wrong on this rank before. Returns as trainer_begin().
 */
static int check_reduce(struct trainer *trainer, struct ddp_error *mine,
			struct ddp_error *error)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	enum device_type type = trainer->options->grad_dtype;
	size_t count = buckets_find_largest(&trainer->buckets);

	for (size_t begin = 0; begin < count; begin += PIECE)
		write_piece(trainer, begin, count - begin < PIECE ?
			    count - begin : PIECE);
	if (trainer->buckets.sharded) {
		sum_values(trainer, REDUCE_SCATTER, count);
		sum_values(trainer, ALL_GATHER, count);
	} else {
		sum_values(trainer, ALL_REDUCE, count);
	}
	for (size_t begin = 0; begin < count && mine->code == DDP_ERROR_NONE;
	     begin += PIECE)
		compare_piece(trainer, begin, count - begin < PIECE ?
			      count - begin : PIECE, mine);
	device->table->zero(device, trainer->grad,
			    count * device_type_bytes(type));
	return world_share_errors(collective, mine, error);
}

/* ---- the same parameters on all ranks */

/*
 * Rounds fp32 values, in the device's memory, to what operators read. It rounds
 * as the last update did, so that a run that goes on has the same.
 */
static void write_copy(struct trainer *trainer, struct range values,
		       const float *from)
{
	struct device *device = &trainer->device;

	device->table->round(device, &(struct op_round){
		.count = values.end - values.begin, .param = from,
		.copy = value_at(device->type, trainer->param, values.begin),
		.state = trainer->state,
		.rounding = trainer_find_rounding(trainer, values.begin) });
}

void trainer_share_parameters(struct trainer *trainer)
{
	struct buckets *buckets = &trainer->buckets;

	for (int i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->list[i];

		if (trainer->param != trainer->master &&
		    bucket->own.begin < bucket->own.end)
			write_copy(trainer, bucket->own,
				   trainer_find_master(trainer, bucket,
						       bucket->own.begin));
		if (buckets->sharded)
			trainer_start_gather(trainer, i);
	}
	if (buckets->sharded)
		trainer_wait_for_gathers(trainer);
}

/* Broadcasts fp32 values of the buffer, from `offset` on. */
static void broadcast_piece(struct trainer *trainer, size_t offset,
			    size_t count)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	uint64_t ticket;

	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, BROADCAST, offset, count,
					  DEVICE_FP32, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
	ddp_heartbeat();
}

/*
 * Rank 0's parameters, fp32 in host memory (unused on other ranks), to the
 * masters of all ranks and to what operators read: through the gradient's
 * memory if the master is not in the buffer.
 */
static void broadcast_parameters(struct trainer *trainer, const float *first)
{
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;
	size_t most = buckets_find_largest(&trainer->buckets) *
		      device_type_bytes(trainer->options->grad_dtype) /
		      sizeof(float);
	bool shared = trainer->master == trainer->param;

	for (size_t begin = 0; begin < count; begin += most) {
		size_t length = count - begin < most ? count - begin : most;
		struct range values = { begin, begin + length };
		float *at = shared ? trainer->master + begin : trainer->grad;

		if (trainer->collective->rank == 0)
			device->table->copy(device, QUEUE_COMPUTE, at,
					    first + begin,
					    length * sizeof(*first));
		broadcast_piece(trainer, shared ?
				trainer_count_values(trainer) + begin : 0,
				length);
		if (shared)
			continue;
		trainer_keep_values(trainer, trainer->master, false, values,
				    at);
		write_copy(trainer, values, at);
	}
	if (!shared)
		device->table->zero(device, trainer->grad,
				    most * sizeof(float));
}

/* Rank 0's parameters, the caller's to free; NULL with error set on failure. */
static float *init_parameters(struct trainer *trainer, struct ddp_error *error)
{
	const struct options *options = trainer->options;
	size_t count = trainer->model->param_count;
	float *host = malloc(count * sizeof(*host));

	if (!host) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			      "training state; choose a smaller model or "
			      "--batch");
		return NULL;
	}
	if (!options->init) {
		trainer->model->init(trainer->model, options->seed, host);
	} else if (llmc_read(options->init, trainer->model, host, error) < 0) {
		free(host);
		return NULL;
	}
	return host;
}

/* The buffer has the gradient, the parameters and the sums of squares. */
static void find_buffer(struct trainer *trainer, char *buffer)
{
	const struct options *options = trainer->options;

	trainer->grad = buffer;
	trainer->param = buffer + trainer_count_values(trainer) *
			 device_type_bytes(options->grad_dtype);
	if (trainer->buckets.sharded)
		trainer->blocks = (void *)(buffer +
					   count_values_bytes(trainer));
	if (options->dtype == DEVICE_FP32)
		trainer->master = trainer->param;
	if (options->grad_dtype == DEVICE_FP32)
		trainer->levels[0] = trainer->grad;
	if (options->grad_dtype == options->dtype)
		trainer->scratch = trainer->grad;
}

/* Returns as alloc(). */
static void *allocate_buffer(struct trainer *trainer, struct ddp_error *error)
{
	struct collective *collective = trainer->collective;
	struct collective_plan plan = {
		.bytes = trainer_count_buffer(trainer),
		.largest = count_largest(trainer),
		.staging = trainer->staging,
		.own = trainer_count_own(trainer),
		.deterministic = trainer->options->deterministic
	};

	return collective->table->alloc(collective, &trainer->device, &plan,
					error);
}

int trainer_begin(struct trainer *trainer, struct ddp_error *error)
{
	struct ddp_error mine = { 0 };
	void *buffer = allocate_buffer(trainer, error);
	float *first = NULL;
	int result;

	if (!buffer)
		return -1;
	find_buffer(trainer, buffer);
	if (trainer->collective->rank == 0)
		first = init_parameters(trainer, &mine);
	if (trainer->buckets.sharded && mine.code == DDP_ERROR_NONE)
		trainer_order_sums(trainer, &mine);
	result = check_reduce(trainer, &mine, error);
	if (result == 0)
		broadcast_parameters(trainer, first);
	free(first);
	return result;
}
