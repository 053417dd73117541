/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up what one rank needs to train: model, memory, buckets. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "ddp.h"
#include "layout/error.h"
#include "model.h"
#include "trainer.h"

enum { MOST_HELD_OUT = 512, MOST_THREADS = 4096 };

static int refuse_memory(struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			     "training state; choose a smaller model or "
			     "--batch");
}

/* With evaluation, hold out one in ten sequences. */
static int divide_data(struct trainer *trainer, struct ddp_error *error)
{
	const struct options *options = trainer->options;
	uint64_t context = trainer->model->shape.context;
	uint64_t count = (trainer->data->tokens - 1) / context;
	struct sampler *sampler = &trainer->sampler;

	if (options->eval_every) {
		trainer->held_out = count / 10;
		if (trainer->held_out > MOST_HELD_OUT)
			trainer->held_out = MOST_HELD_OUT;
		if (trainer->held_out < options->granule &&
		    options->granule <= count / 10)
			trainer->held_out = options->granule;
		trainer->held_out -= trainer->held_out % options->granule;
		if (trainer->held_out == 0)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "--eval-every holds a tenth of "
					     "the data out, but a tenth of "
					     "the %" PRIu64 " sequences of "
					     "--context %" PRIu64 " in %s is "
					     "less than %s%" PRIu64 "; name a "
					     "larger file", count, context,
					     options->data,
					     options->deterministic ?
					     "--granule " : "",
					     options->granule);
	}
	*sampler = (struct sampler){
		.samples = count - trainer->held_out,
		.replicas = options->global_batch,
		.seed = options->seed, .drop_last = options->drop_last
	};
	if (!options->drop_last || sampler->samples >= sampler->replicas)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--drop-last leaves "
			     "no step: %s has %" PRIu64 " sequences to train "
			     "on, fewer than a global batch of %" PRIu64 "; "
			     "name a larger file", options->data,
			     sampler->samples, sampler->replicas);
}

static int create_model(struct trainer *trainer, struct ddp_error *error)
{
	const struct options *options = trainer->options;

	if (options->model == MODEL_TOY)
		trainer->model = toy_create(options->seed, error);
	else
		trainer->model = gpt_create(&options->shape, trainer->chunk,
					    trainer->device.table, error);
	return trainer->model ? 0 : -1;
}

/* Reserve bytes of a space; NULL until its arena exists. */
static void *take(struct trainer *trainer, enum device_space space,
		  size_t bytes)
{
	char *arena = trainer->device.arena[space];
	size_t begin = trainer->bytes[space];

	trainer->bytes[space] += (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN *
				 DEVICE_ALIGN;
	return arena && bytes > 0 ? arena + begin : NULL;
}

/* OMP_NUM_THREADS is a number, or a list: its first number counts here. */
static int count_threads(void)
{
	const char *text = getenv("OMP_NUM_THREADS");
	long threads = text ? strtol(text, NULL, 10) : 1;

	return threads >= 1 && threads <= MOST_THREADS ? (int)threads : 1;
}

int trainer_count_moments(const struct options *options)
{
	if (options->optimizer == OPTIMIZER_ADAMW)
		return 2;
	return options->momentum > 0 ? 1 : 0;
}

/* Place everything in the arenas, which gives their sizes. */
static void lay_out(struct trainer *trainer)
{
	const struct options *options = trainer->options;
	struct model *model = trainer->model;
	size_t ranks = (size_t)trainer->collective->size;
	size_t param = model->param_count * sizeof(float);
	size_t tokens = (size_t)trainer->chunk * model->shape.context *
			sizeof(int32_t);
	size_t losses = (size_t)trainer->chunks * sizeof(double);
	size_t blocks = (model->param_count / DEVICE_BLOCK + 1) *
			sizeof(double);
	int moments = trainer_count_moments(options);

	for (int space = 0; space < SPACES; space++) {
		trainer->bytes[space] = 0;
		model->memory[space] = take(trainer, space,
					    model->bytes[space]);
	}
	trainer->tokens = take(trainer, SPACE_DEVICE, tokens);
	trainer->targets = take(trainer, SPACE_DEVICE, tokens);
	trainer->losses = take(trainer, SPACE_DEVICE, losses);
	trainer->blocks = take(trainer, SPACE_DEVICE, blocks);
	if (options->sample)
		trainer->logits = take(trainer, SPACE_DEVICE,
				       model->shape.context *
				       model->shape.vocab * sizeof(float));
	if (moments > 0)
		trainer->v = take(trainer, SPACE_DEVICE, param);
	if (moments > 1)
		trainer->m = take(trainer, SPACE_DEVICE, param);
	for (int level = 1; level <= trainer->level_count; level++)
		trainer->levels[level] = take(trainer, SPACE_DEVICE, param);
	trainer->read = take(trainer, SPACE_STAGING, 2 * tokens);
	trainer->host_losses = take(trainer, SPACE_STAGING, losses);
	trainer->host_blocks = take(trainer, SPACE_STAGING, blocks);
	trainer->piece = take(trainer, SPACE_STAGING, PIECE * sizeof(float));
	trainer->samples = take(trainer, SPACE_HOST, (size_t)trainer->chunk *
				sizeof(*trainer->samples));
	trainer->shares = take(trainer, SPACE_HOST,
			       ranks * sizeof(*trainer->shares));
	trainer->rank_losses = take(trainer, SPACE_HOST,
				    ranks * sizeof(*trainer->rank_losses));
}

/* A --plan may be for a model that does not fit into this machine. */
static int create_memory(struct trainer *trainer, struct ddp_error *error)
{
	struct device *device = &trainer->device;
	int threads = trainer->options->deterministic ? 1 : count_threads();

	lay_out(trainer);
	if (trainer->options->plan)
		return 0;
	if (device->table->open(device, trainer->bytes, threads, error) < 0)
		return -1;
	lay_out(trainer);
	return 0;
}

struct trainer *trainer_create(const struct options *options,
			       struct collective *collective,
			       const struct data *data,
			       struct ddp_error *error)
{
	uint64_t chunk = options->deterministic ? options->granule :
						  options->batch;
	struct trainer *trainer = calloc(1, sizeof(*trainer));

	if (!trainer) {
		refuse_memory(error);
		return NULL;
	}
	trainer->options = options;
	trainer->collective = collective;
	trainer->data = data;
	trainer->device.table = &device_cpu;
	trainer->chunk = (int)chunk;
	trainer->chunks = (int)(options->global_batch / chunk /
				(uint64_t)collective->size);
	if (options->deterministic)
		while (1 << trainer->level_count < trainer->chunks)
			trainer->level_count++;
	if (create_model(trainer, error) < 0 ||
	    (data->bytes && divide_data(trainer, error) < 0) ||
	    create_memory(trainer, error) < 0)
		goto fail;
	trainer->buckets.collective = collective;
	trainer->buckets.device = &trainer->device;
	trainer->buckets.overlap = options->overlap;
	if (buckets_create(&trainer->buckets, trainer->model->param_count,
			   options->bucket_bytes) == 0)
		return trainer;
	refuse_memory(error);
fail:
	trainer_destroy(trainer);
	return NULL;
}

/* Rank 0's parameters, which it then broadcasts. */
static int init_parameters(struct trainer *trainer)
{
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;
	float *host = malloc(count * sizeof(*host));

	if (!host)
		return -1;
	trainer->model->init(trainer->model, trainer->options->seed, host);
	device->table->copy(device, QUEUE_COMPUTE, trainer->param, host,
			    count * sizeof(*host));
	free(host);
	return 0;
}

static void broadcast_parameters(struct trainer *trainer)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;
	size_t most = buckets_find_largest(&trainer->buckets);

	device->table->record(device, 0, QUEUE_COMPUTE);
	for (size_t begin = 0; begin < count; begin += most) {
		size_t length = count - begin < most ? count - begin : most;
		uint64_t ticket = collective->table->start(collective,
			BROADCAST, count + begin, length, FLOAT32, 0);

		collective->table->wait(collective, ticket, QUEUE_COMPUTE);
		ddp_heartbeat();
	}
}

int trainer_begin(struct trainer *trainer, struct ddp_error *error)
{
	struct collective *collective = trainer->collective;
	size_t count = trainer->model->param_count;
	struct collective_plan plan = {
		.bytes = 2 * count * sizeof(float),
		.largest = buckets_find_largest(&trainer->buckets),
		.deterministic = trainer->options->deterministic
	};
	struct ddp_error mine = { 0 };

	trainer->levels[0] = collective->table->alloc(collective,
						      &trainer->device, &plan,
						      error);
	if (!trainer->levels[0])
		return -1;
	trainer->param = trainer->levels[0] + count;
	if (collective->rank == 0 && init_parameters(trainer) < 0)
		refuse_memory(&mine);
	if (trainer_check_reduce(trainer, &mine, error) < 0)
		return -1;
	broadcast_parameters(trainer);
	return 0;
}

void trainer_destroy(struct trainer *trainer)
{
	if (!trainer)
		return;
	buckets_destroy(&trainer->buckets);
	if (trainer->device.state)
		trainer->device.table->close(&trainer->device);
	free(trainer->model);
	free(trainer);
}
