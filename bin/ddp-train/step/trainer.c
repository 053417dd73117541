/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up what one rank needs to train: model, memory, buckets. */
#include <inttypes.h>
#include <stdlib.h>

#include "collective.h"
#include "model.h"
#include "run/module.h"
#include "run/world.h"
#include "step/trainer.h"
#include "util/error.h"

enum { MOST_HELD_OUT = 512, MOST_THREADS = 4096 };

static int refuse_memory(struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for the "
			     "training state; choose a smaller model or "
			     "--batch");
}

/*
 * Divides the data. Evaluation holds out a tenth of the sequences, at most
 * MOST_HELD_OUT or one granule, in whole granules.
 */
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

bool trainer_has_sum(const struct trainer *trainer)
{
	return trainer->options->grad_dtype != DEVICE_FP32 &&
	       trainer->chunks > 1;
}

/* Creates buckets first: some memory is for what this rank updates alone. */
static int create_buckets(struct trainer *trainer, struct ddp_error *error)
{
	const struct options *options = trainer->options;

	trainer->buckets = (struct buckets){
		.collective = trainer->collective, .device = &trainer->device,
		.type = options->grad_dtype, .sharded = options->zero,
		.overlap = options->overlap
	};
	if (buckets_create(&trainer->buckets, trainer->model->param_count,
			   options->bucket_bytes) < 0)
		return refuse_memory(error);
	return 0;
}

/* A GPU has memory enough, and little time. */
bool trainer_must_recompute(const struct trainer *trainer)
{
	enum recompute choice = trainer->options->recompute;

	if (choice == RECOMPUTE_AUTO)
		return trainer->device.table == &device_cpu;
	return choice == RECOMPUTE_ON;
}

static int create_model(struct trainer *trainer, struct ddp_error *error)
{
	const struct options *options = trainer->options;

	trainer->device.shape.attention = options->attention;
	if (options->model == MODEL_TOY)
		trainer->model = toy_create(options->seed, error);
	else
		trainer->model = gpt_create(&options->shape, trainer->chunk,
					    &trainer->device, options->dtype,
					    trainer_must_recompute(trainer), error);
	return trainer->model ? 0 : -1;
}

static size_t round_up(size_t bytes)
{
	return (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

/* Reserve bytes of a space; NULL until its arena exists. */
static void *take(struct trainer *trainer, enum device_space space,
		  size_t bytes)
{
	char *arena = trainer->device.arena[space];
	size_t begin = trainer->bytes[space];

	trainer->bytes[space] += round_up(bytes);
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

size_t trainer_count_values(const struct trainer *trainer)
{
	return trainer->model->param_count + trainer->model->spare;
}

/* Lays out all that each parameter has outside the collective's buffer. */
static void lay_out_parameters(struct trainer *trainer)
{
	const struct options *options = trainer->options;
	size_t count = trainer_count_values(trainer);
	size_t single = count * sizeof(float);
	size_t kept = trainer->buckets.kept * sizeof(float);
	size_t *used = &trainer->bytes[SPACE_DEVICE], before = *used;
	int moments = trainer_count_moments(options);

	if (options->dtype != DEVICE_FP32)
		trainer->master = take(trainer, SPACE_DEVICE, kept);
	trainer->master_bytes = *used - before;
	before = *used;
	if (moments > 0)
		trainer->v = take(trainer, SPACE_DEVICE, kept);
	if (moments > 1)
		trainer->m = take(trainer, SPACE_DEVICE, kept);
	trainer->optimizer_bytes = *used - before;
	if (options->grad_dtype != options->dtype)
		trainer->scratch = take(trainer, SPACE_DEVICE, count *
					device_type_bytes(options->dtype));
	if (trainer_has_sum(trainer))
		trainer->levels[0] = take(trainer, SPACE_DEVICE, single);
	for (int level = 1; level <= trainer->level_count; level++)
		trainer->levels[level] = take(trainer, SPACE_DEVICE, single);
}

/* Place everything in the arenas, which gives their sizes. */
static void lay_out(struct trainer *trainer)
{
	const struct options *options = trainer->options;
	struct model *model = trainer->model;
	size_t ranks = (size_t)trainer->collective->size;
	size_t part = (size_t)trainer->chunk * model->shape.context;
	size_t tokens = part * sizeof(int32_t);
	size_t losses = (size_t)trainer->chunks * sizeof(double);
	size_t blocks = model->param_count / DEVICE_BLOCK + 1;

	for (int space = 0; space < SPACES; space++) {
		trainer->bytes[space] = 0;
		model->memory[space] = take(trainer, space,
					    model->bytes[space]);
	}
	trainer->tokens = take(trainer, SPACE_DEVICE, 3 * tokens);
	if (trainer->tokens) {
		trainer->targets = trainer->tokens + part;
		trainer->rows = trainer->targets + part;
	}
	trainer->losses = take(trainer, SPACE_DEVICE, losses);
	if (trainer->buckets.sharded)
		trainer->order = take(trainer, SPACE_DEVICE,
				      blocks * sizeof(*trainer->order));
	else
		trainer->blocks = take(trainer, SPACE_DEVICE,
				       blocks * sizeof(*trainer->blocks));
	trainer->state = take(trainer, SPACE_DEVICE, sizeof(*trainer->state));
	if (options->sample)
		trainer->logits = take(trainer, SPACE_DEVICE,
				       model->shape.context *
				       model->shape.vocab *
				       device_type_bytes(options->dtype));
	lay_out_parameters(trainer);
	trainer->read_tokens = take(trainer, SPACE_STAGING, 4 * tokens);
	trainer->host_losses = take(trainer, SPACE_STAGING, 2 * losses);
	trainer->host_state = take(trainer, SPACE_STAGING,
				   2 * sizeof(*trainer->host_state));
	trainer->piece = take(trainer, SPACE_STAGING, PIECE * sizeof(float));
	trainer->staging = take(trainer, SPACE_STAGING,
				ranks * COLLECTIVE_RECORD);
	trainer->snapshot = take(trainer, SPACE_STAGING,
				 trainer_count_snapshot(trainer));
	trainer->samples = take(trainer, SPACE_HOST, (size_t)trainer->chunk *
				sizeof(*trainer->samples));
	trainer->shares = take(trainer, SPACE_HOST,
			       ranks * sizeof(*trainer->shares));
	trainer->rank_losses = take(trainer, SPACE_HOST,
				    ranks * sizeof(*trainer->rank_losses));
}

void trainer_set_state(struct trainer *trainer, const struct step_state *state)
{
	struct device *device = &trainer->device;

	device->table->copy(device, QUEUE_COMPUTE, trainer->state, state,
			    sizeof(*state));
}

/* A --plan may be for a model that does not fit into this machine. */
static int create_memory(struct trainer *trainer, struct ddp_error *error)
{
	struct device *device = &trainer->device;
	int threads = trainer->options->deterministic ? 1 : count_threads();
	bool dynamic = trainer->options->dtype == DEVICE_FP16;

	lay_out(trainer);
	if (trainer->options->plan)
		return 0;
	device->tf32 = trainer->options->tf32;
	device->later = trainer_count_exchanged(trainer);
	if (device->table->open(device, trainer->options->dtype, trainer->bytes,
				threads, error) < 0)
		return -1;
	lay_out(trainer);
	trainer_set_state(trainer, &(struct step_state){
		.loss_scale = dynamic ? LOSS_SCALE_FIRST : 1 });
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
	trainer->device.share_gpu = options->share_gpu;
	trainer->device.place = collective->place;
	trainer->device.table = options->plan ?
				module_find_planned(options, error) :
				module_find_device(options, error);
	if (!trainer->device.table) {
		free(trainer);
		return NULL;
	}
	trainer->chunk = (int)chunk;
	trainer->chunks = (int)(options->global_batch / chunk /
				(uint64_t)collective->size);
	if (options->deterministic)
		while (1 << trainer->level_count < trainer->chunks)
			trainer->level_count++;
	if (world_check_abi(trainer->device.table->name, DEVICE_ABI,
			    trainer->device.table->abi, error) < 0 ||
	    create_model(trainer, error) < 0 ||
	    (data->bytes && divide_data(trainer, error) < 0) ||
	    create_buckets(trainer, error) < 0 ||
	    create_memory(trainer, error) < 0) {
		trainer_destroy(trainer);
		return NULL;
	}
	return trainer;
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
