/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient of a step, chunk by chunk, and the loss of held-out data. */
#define _GNU_SOURCE
#include <sched.h>

#include "collective.h"
#include "ddp.h"
#include "model.h"
#include "step/sum_tree.h"
#include "step/trainer.h"

/*
 * If a tree sums the chunks, those that are added first are computed one after
 * the other: in bit-reversed order.
 */
static int find_chunk(const struct trainer *trainer, int order)
{
	int index = 0;

	if (!trainer->options->deterministic)
		return order;
	for (int bit = 1; bit < trainer->chunks; bit <<= 1) {
		index = 2 * index + (order & 1);
		order >>= 1;
	}
	return index;
}

/* The position in the step of a chunk's i-th sequence. */
static uint64_t find_position(const struct trainer *trainer, int chunk, int i)
{
	const struct options *options = trainer->options;
	uint64_t rank = (uint64_t)trainer->collective->rank;
	uint64_t size = (uint64_t)trainer->collective->size;
	uint64_t granules = options->global_batch / options->granule;

	if (options->deterministic)
		return rank + (uint64_t)chunk * size + (uint64_t)i * granules;
	return rank + ((uint64_t)chunk * (uint64_t)trainer->chunk +
		       (uint64_t)i) * size;
}

static uint64_t find_sample(const struct trainer *trainer, uint64_t step,
			    uint64_t position)
{
	const struct sampler *sampler = &trainer->sampler;
	uint64_t length;

	if (!trainer->data->bytes)
		return (step - 1) * trainer->options->global_batch + position;
	length = sampler_count(sampler);
	return sampler_find_sample(sampler, (step - 1) / length, position,
				   (step - 1) % length);
}

/* Sorts by digits, the lowest first: quick, and those that are equal stay. */
enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Writes from (NULL: 0, 1, ...) to `to`, sorted by one digit of the tokens. */
static void sort_digit(int rows, const int32_t *tokens, int shift,
		       const int32_t *from, int32_t *to)
{
	int begin[DIGITS + 1] = { 0 };

	for (int i = 0; i < rows; i++)
		begin[((uint32_t)tokens[i] >> shift) % DIGITS + 1]++;
	for (int digit = 0; digit < DIGITS; digit++)
		begin[digit + 1] += begin[digit];
	for (int i = 0; i < rows; i++) {
		int32_t row = from ? from[i] : i;

		to[begin[((uint32_t)tokens[row] >> shift) % DIGITS]++] = row;
	}
}

void order_by_token(int rows, const int32_t *tokens, int32_t *order,
		    int32_t *room)
{
	sort_digit(rows, tokens, 0, NULL, room);
	sort_digit(rows, tokens, DIGIT_BITS, room, order);
}

/* Sequence s is tokens s * context ..; its targets are one further on. */
static void read_batch(struct trainer *trainer, int count)
{
	size_t context = trainer->model->shape.context;
	size_t part = (size_t)trainer->chunk * context;
	size_t rows = (size_t)count * context;
	int32_t *tokens = trainer->read_tokens, *order = tokens + 2 * part;

	if (!trainer->data->bytes)
		return;
	for (int i = 0; i < count; i++) {
		uint64_t first = trainer->samples[i] * context;
		int32_t *to = tokens + (size_t)i * context;

		data_read(trainer->data, first, context, to);
		data_read(trainer->data, first + 1, context, to + part);
	}
	order_by_token((int)rows, tokens, order, order + part);
}

/* Sends the batch that was read last to the device. */
static struct batch send_batch(struct trainer *trainer, int count)
{
	struct device *device = &trainer->device;
	size_t part = (size_t)trainer->chunk * trainer->model->shape.context;

	if (trainer->data->bytes)
		device->table->copy(device, QUEUE_COMPUTE, trainer->tokens,
				    trainer->read_tokens,
				    3 * part * sizeof(int32_t));
	return (struct batch){
		.sequences = count, .samples = trainer->samples,
		.tokens = trainer->tokens, .targets = trainer->targets,
		.order = trainer->rows
	};
}

static void read_chunk(struct trainer *trainer, uint64_t step, int order)
{
	int chunk = find_chunk(trainer, order);

	for (int i = 0; i < trainer->chunk; i++) {
		uint64_t position = find_position(trainer, chunk, i);

		trainer->samples[i] = find_sample(trainer, step, position);
	}
	read_batch(trainer, trainer->chunk);
}

/* Add the levels above `to` down into it, the highest first. */
static void add_levels(struct trainer *trainer, int from, int to,
		       size_t begin, size_t end)
{
	struct device *device = &trainer->device;

	for (int level = from; level > to; level--)
		device->table->add(device, trainer->levels[level - 1] + begin,
				   DEVICE_FP32, trainer->levels[level] + begin,
				   end - begin);
}

static int find_level(const struct trainer *trainer, int order)
{
	return trainer->options->deterministic ?
	       __builtin_popcount((unsigned int)order) : 0;
}

/* Returns true if a chunk's gradient is added to that of those before it. */
static bool is_added(const struct trainer *trainer, int order)
{
	return order > 0 && !trainer->options->deterministic;
}

/* Put part of what operators wrote to scratch into the chunk's level. */
static void collect(struct trainer *trainer, int order, size_t begin,
		    size_t end)
{
	struct device *device = &trainer->device;
	enum device_type type = device->type;
	float *level = trainer->levels[find_level(trainer, order)];
	const void *from;

	if (type == DEVICE_FP32 || !level)
		return;
	from = value_at(type, trainer->scratch, begin);
	if (is_added(trainer, order))
		device->table->add(device, level + begin, type, from,
				   end - begin);
	else
		device->table->cast(device, DEVICE_FP32, level + begin, type,
				    from, end - begin);
}

/* The sum over the chunks becomes what the ranks exchange. */
static void round_sum(struct trainer *trainer, size_t begin, size_t end)
{
	enum device_type type = trainer->options->grad_dtype;
	struct device *device = &trainer->device;

	if (trainer_has_sum(trainer))
		device->table->cast(device, type,
				    value_at(type, trainer->grad, begin),
				    DEVICE_FP32, trainer->levels[0] + begin,
				    end - begin);
}

/*
 * Sums the gradients of all chunks up to `end`, and starts the buckets that
 * this completes. It is called after each operator of the last chunk.
 */
static void start_ready(void *context, size_t end)
{
	struct trainer *trainer = context;

	collect(trainer, trainer->chunks - 1, trainer->summed, end);
	add_levels(trainer, trainer->level_count, 0, trainer->summed, end);
	round_sum(trainer, trainer->summed, end);
	trainer->summed = end;
	if (end == trainer->model->param_count)
		trainer_mark(trainer, STEP_COMPUTED);
	buckets_start_ready(&trainer->buckets, end);
}

/*
 * The gradient of the chunk that is `order`-th in the computation; the first
 * one has been read.
 */
static void compute_chunk(struct trainer *trainer, uint64_t step, int order)
{
	const struct options *options = trainer->options;
	bool last = order == trainer->chunks - 1;
	bool fp32 = options->dtype == DEVICE_FP32;
	int level = find_level(trainer, order);
	struct backward backward = {
		.scale = 1 / (double)options->global_batch,
		.loss_scale = options->dtype == DEVICE_FP16 ?
			      &trainer->state->loss_scale : NULL,
		.accumulate = fp32 && is_added(trainer, order),
		.progress = last ? start_ready : NULL,
		.context = trainer
	};
	struct batch batch;

	if (order > 0)
		read_chunk(trainer, step, order);
	batch = send_batch(trainer, trainer->chunk);
	trainer->model->gradient(trainer->model, &trainer->device,
				 trainer->param, &batch, &backward,
				 fp32 ? trainer->levels[level] :
					trainer->scratch,
				 trainer->losses +
				 find_chunk(trainer, order));
	if (last)
		return;
	collect(trainer, order, 0, trainer->model->param_count);
	/* Fold as many levels as order, in binary, ends in ones. */
	add_levels(trainer, level,
		   __builtin_popcount((unsigned int)order + 1) - 1, 0,
		   trainer->model->param_count);
	ddp_heartbeat();
}

static void compute_gradient(struct trainer *trainer, uint64_t step)
{
	trainer_mark(trainer, STEP_BEGUN);
	trainer->summed = 0;
	for (int order = 0; order < trainer->chunks; order++)
		compute_chunk(trainer, step, order);
	buckets_finish(&trainer->buckets);
	trainer_mark(trainer, STEP_REDUCED);
}

/* Returns where a step's results wait. */
static double *find_losses(const struct trainer *trainer, uint64_t step)
{
	return trainer->host_losses + step % 2 * (size_t)trainer->chunks;
}

void trainer_mark(struct trainer *trainer, enum step_event event)
{
	struct device *device = &trainer->device;

	device->table->record(device, trainer_find_event(trainer->step, event),
			      QUEUE_COMPUTE);
}

/* Returns 1; or -1 if work of the device has failed. */
static int await_event(struct trainer *trainer, int event)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	int come;

	while ((come = device->table->query(device, event)) == 0) {
		collective->table->poll(collective);
		sched_yield();	/* the core may be NCCL's as well */
	}
	return come;
}

int trainer_fetch(struct trainer *trainer, void *to, const void *from,
		   size_t bytes)
{
	struct device *device = &trainer->device;

	device->table->record(device, 0, QUEUE_COMPUTE);
	if (await_event(trainer, 0) < 0)
		return -1;
	device_fetch(device, to, from, bytes);
	return device->table->query(device, 0) < 0 ? -1 : 0;
}

/*
 * Requests to a device wait in a queue that has an end, where CUDA then blocks
 * without a deadline. So no step is asked for before other ranks have come in
 * the one before: its update still keeps the device busy. With --zero 1 ranks
 * wait for each other up to the last gather. A step has little left behind
 * that, so the device waits there until the first operators are asked for.
 */
static void await_ranks(struct trainer *trainer)
{
	if (trainer->collective->size > 1 && trainer->step > trainer->read)
		await_event(trainer, trainer_find_event(
			trainer->step, trainer->buckets.sharded ?
				       GATHERS_ENDED : STEP_REDUCED));
}

void trainer_take_step(struct trainer *trainer, uint64_t step)
{
	struct device *device = &trainer->device;
	const struct device_table *table = device->table;

	read_chunk(trainer, step, 0);
	await_ranks(trainer);
	trainer->apart[step % STEP_SETS] = trainer->step == trainer->read;
	trainer->step = step;
	compute_gradient(trainer, step);
	trainer_finish_gradient(trainer);
	trainer_update(trainer, step);
	table->copy(device, QUEUE_COMPUTE, find_losses(trainer, step),
		    trainer->losses,
		    (size_t)trainer->chunks * sizeof(double));
	table->copy(device, QUEUE_COMPUTE, &trainer->host_state[step % 2],
		    trainer->state, sizeof(*trainer->state));
	trainer_mark(trainer, STEP_ENDED);
}

/* Seconds of the device between two events of a step that has ended. */
static double measure(struct trainer *trainer, uint64_t step,
		      enum step_event from, enum step_event to)
{
	struct device *device = &trainer->device;

	return device->table->elapsed(device, trainer_find_event(step, from),
				      trainer_find_event(step, to));
}

/* Measures from the end of the step before, which another set of events has. */
static double measure_whole(struct trainer *trainer, uint64_t step)
{
	struct device *device = &trainer->device;

	if (trainer->apart[step % STEP_SETS])
		return measure(trainer, step, STEP_BEGUN, STEP_ENDED);
	return device->table->elapsed(device,
				      trainer_find_event(step - 1, STEP_ENDED),
				      trainer_find_event(step, STEP_ENDED));
}

static void measure_step(struct trainer *trainer, uint64_t step,
			 struct share *share)
{
	share->seconds = measure_whole(trainer, step);
	share->busy = measure(trainer, step, STEP_BEGUN, STEP_COMPUTED);
	share->exposed = measure(trainer, step, STEP_COMPUTED, STEP_REDUCED);
	if (trainer->buckets.sharded)
		share->exposed += measure(trainer, step, SUMS_BEGUN,
					  SUMS_GATHERED) +
				  measure(trainer, step, GATHERS_BEGUN,
					  GATHERS_ENDED);
}

int trainer_read_step(struct trainer *trainer, uint64_t step,
		      struct share *share, struct ddp_error *error)
{
	const struct step_state *state = &trainer->host_state[step % 2];
	struct device *device = &trainer->device;

	if (await_event(trainer, trainer_find_event(step, STEP_ENDED)) < 0)
		return device->table->check(device, error);
	trainer->read = step;
	measure_step(trainer, step, share);
	share->loss = fold_doubles(find_losses(trainer, step),
				   trainer->chunks);
	share->norm = state->norm;
	share->skipped = state->skip;
	share->loss_scale = state->loss_scale;
	return 0;
}

/* Returns the part of the mean loss from one chunk of held-out sequences. */
static double compute_chunk_loss(struct trainer *trainer, uint64_t first)
{
	uint64_t left = trainer->held_out - first;
	int count = left < (uint64_t)trainer->chunk ? (int)left :
						      trainer->chunk;
	struct device *device = &trainer->device;
	struct backward backward = {
		.scale = 1 / (double)trainer->held_out
	};
	struct batch batch;

	for (int i = 0; i < count; i++)
		trainer->samples[i] = trainer->sampler.samples + first +
				      (uint64_t)i;
	read_batch(trainer, count);
	batch = send_batch(trainer, count);
	trainer->model->gradient(trainer->model, device, trainer->param,
				 &batch, &backward, NULL, trainer->losses);
	trainer_fetch(trainer, trainer->host_losses, trainer->losses,
		      sizeof(double));
	return trainer->host_losses[0];
}

/* The ranks take chunks in turn, and all add them up in the same order. */
double trainer_evaluate(struct trainer *trainer)
{
	struct collective *collective = trainer->collective;
	uint64_t chunk = (uint64_t)trainer->chunk;
	uint64_t turn = chunk * (uint64_t)collective->size;
	struct share *shares = trainer->shares;
	double sum = 0;

	for (uint64_t begin = 0; begin < trainer->held_out; begin += turn) {
		uint64_t first = begin + chunk * (uint64_t)collective->rank;
		struct share mine = { 0 };

		if (first < trainer->held_out)
			mine.loss = compute_chunk_loss(trainer, first);
		collective->table->agree(collective, &mine, shares,
					 sizeof(mine));
		for (int rank = 0; rank < collective->size; rank++)
			sum += shares[rank].loss;
		ddp_heartbeat();
	}
	return sum;
}
