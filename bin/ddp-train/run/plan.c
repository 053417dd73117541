/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a run needs, and says how fast its GPUs should be: --plan, MFU. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collective.h"
#include "log/progress.h"
#include "model.h"
#include "run/predict.h"
#include "run/run.h"
#include "step/trainer.h"

static void print_memory(const char *what, double bytes)
{
	printf("  %-34s %12.1f MiB\n", what, bytes / (1 << 20));
}

static bool is_on_gpu(const struct trainer *trainer)
{
	return trainer->device.table != &device_cpu;
}

/* Prints a part of the collective's buffer. Ranks of a node share it on CPU. */
static void print_buffer(const struct trainer *trainer, const char *what,
			 double bytes)
{
	const struct collective *collective = trainer->collective;
	char name[64];

	snprintf(name, sizeof(name), "%s%s", what,
		 collective->size > collective->nodes && !is_on_gpu(trainer) ?
		 ", in shared memory" : "");
	print_memory(name, bytes);
}

static void print_model(const struct trainer *trainer)
{
	const struct model *model = trainer->model;
	const struct model_shape *shape = &model->shape;

	printf("model %s, %zu parameters", model->name, model->param_count);
	if (shape->layers)
		printf(" (%" PRIu64 " layers, %" PRIu64 " heads, width %"
		       PRIu64 ", context %" PRIu64 ", vocabulary %" PRIu64
		       ")", shape->layers, shape->heads, shape->width,
		       shape->context, shape->vocab);
	printf("\n");
}

static void print_step(const struct trainer *trainer)
{
	const struct options *options = trainer->options;
	int size = trainer->collective->size;

	printf("a step: %" PRIu64 " samples, %d rank%s on %d node%s, "
	       "%d x %d samples each%s\n", options->global_batch, size,
	       size > 1 ? "s" : "", trainer->collective->nodes,
	       trainer->collective->nodes > 1 ? "s" : "", trainer->chunks,
	       trainer->chunk,
	       options->deterministic ? ", summed by a tree" : "");
	if (trainer->data->bytes)
		printf("data: %" PRIu64 " tokens, %" PRIu64 " samples to train "
		       "on, %" PRIu64 " steps an epoch, %" PRIu64
		       " samples held out\n", trainer->data->tokens,
		       trainer->sampler.samples,
		       sampler_count(&trainer->sampler), trainer->held_out);
}

/* Prints the sums. A rank has its own part of what is shared: none twice. */
static void print_sums(const struct trainer *trainer, double bytes)
{
	int most = trainer->collective->most;
	char name[64];

	print_memory("in all", bytes);
	snprintf(name, sizeof(name), "in all, on a node with %d ranks", most);
	if (most > 1)
		print_memory(name, most * bytes);
}

/* needed: by a rank, but for CUDA and NCCL; gpu: NULL if it is unknown */
static void print_gpu_memory(double needed, const struct rates *gpu)
{
	char name[64];
	double left;

	print_memory("on the GPU, beside CUDA and NCCL", needed);
	if (!gpu)
		return;
	snprintf(name, sizeof(name), "memory of one %s", gpu->name);
	print_memory(name, (double)gpu->mebibytes * (1 << 20));
	left = (double)gpu->mebibytes - needed / (1 << 20);
	if (left >= 0)
		printf("that is enough, if CUDA and NCCL take at most %.1f "
		       "MiB\n", left);
	else
		puts("that is too little: choose a smaller --batch, --recompute "
		     "on, or --zero 1 with several ranks");
}

static void print_all_memory(const struct trainer *trainer,
			     const struct rates *gpu)
{
	const struct options *options = trainer->options;
	double count = (double)trainer_count_values(trainer);
	double grad = count * (double)device_type_bytes(options->grad_dtype);
	double param = count * (double)device_type_bytes(options->dtype);
	double single = count * sizeof(float);
	double sums = (double)(trainer_count_sums(trainer) * sizeof(double));
	double master = (double)trainer->master_bytes;
	double moments = (double)trainer->optimizer_bytes;
	double scratch = options->dtype == options->grad_dtype ? 0 : param;
	double partial = single * (trainer->level_count +
				   trainer_has_sum(trainer));
	double snapshot = (double)trainer_count_snapshot(trainer);
	double own = (double)trainer->device.table->own_bytes(options->dtype);
	double all = (double)trainer_count_own(trainer);
	bool on_gpu = is_on_gpu(trainer);
	double received = (double)trainer_count_received(trainer);

	puts("memory of a rank:");
	print_buffer(trainer, "gradients", grad);
	print_buffer(trainer, "parameters", param);
	if (sums > 0)
		print_buffer(trainer, "sums of squares", sums);
	if (master > 0)
		print_memory("fp32 master of the parameters", master);
	print_memory("optimizer", moments);
	if (scratch > 0)
		print_memory("gradients of a batch", scratch);
	if (partial > 0)
		print_memory("partial sums of gradients", partial);
	if (snapshot > 0)
		print_memory("copy for a checkpoint", snapshot);
	if (own > 0)
		print_memory(on_gpu ? "workspace of products and sums" :
				      "fp32 copies in matrix products", own);
	if (received > 0)
		print_memory("gradients of other ranks", received);
	print_memory("activations and workspace", all - master - moments -
		     scratch - partial - snapshot - own);
	if (on_gpu)
		print_gpu_memory((double)trainer_count_exchanged(trainer) +
				 own + (double)trainer->bytes[SPACE_DEVICE],
				 gpu);
	print_sums(trainer, (double)trainer_count_buffer(trainer) + all +
		   received);
}

/* Buckets first .. last, of equal length. */
static void print_equal_buckets(const struct trainer *trainer, int first,
				int last)
{
	const struct bucket *bucket = &trainer->buckets.list[first];
	size_t count = bucket->end - bucket->begin, begin;
	size_t slice = collective_find_slice(count, 0,
					     trainer->collective->size, &begin);
	char name[32];

	snprintf(name, sizeof(name), last > first ? "%d-%d" : "%d", first,
		 last);
	printf("  %-10s %13zu %13zu %13zu\n", name, bucket->begin, count,
	       slice);
}

static void print_buckets(const struct trainer *trainer)
{
	const struct buckets *buckets = &trainer->buckets;
	const struct bucket *list = buckets->list;
	int first = 0;

	printf("%d bucket%s of gradients, in the order in which they become "
	       "ready:\n", buckets->count, buckets->count > 1 ? "s" : "");
	printf("  %-10s %13s %13s %13s\n", "bucket", "first value", "values",
	       "of a rank");
	for (int i = 1; i <= buckets->count; i++) {
		if (i < buckets->count && list[i].end - list[i].begin ==
		    list[first].end - list[first].begin)
			continue;
		print_equal_buckets(trainer, first, i - 1);
		first = i;
	}
}

double run_count_flops(const struct options *options)
{
	if (options->model != MODEL_GPT)
		return 0;
	return rates_count_model_flops(&options->shape, options->global_batch *
				       options->shape.context);
}

static struct predict_run describe_step(const struct trainer *trainer)
{
	const struct options *options = trainer->options;

	return (struct predict_run){
		.shape = &trainer->model->shape, .type = options->dtype,
		.grad_type = options->grad_dtype, .chunk = trainer->chunk,
		.chunks = trainer->chunks,
		.updated = (double)trainer->buckets.kept,
		.adamw = options->optimizer == OPTIMIZER_ADAMW,
		.recompute = trainer_must_recompute(trainer),
		.tf32 = options->tf32
	};
}

/* A step on a GPU, operator by operator. */
static void print_prediction(const struct trainer *trainer,
			     const struct rates *rates)
{
	struct predict_run step = describe_step(trainer);
	struct predict_row rows[PREDICT_ROWS];
	int count = predict_step(rates, &step, rows);
	double all = predict_seconds(rates, &step);
	double flops = run_count_flops(trainer->options) /
		       trainer->collective->size;

	printf("a step on one %s should take %.2f ms without the exchange "
	       "(MFU %.1f%%), at %.0f%% of its FLOP/s in products, %.0f%% in "
	       "attention, and %.0f%% of its memory's rate:\n", rates->name,
	       all * 1e3, 100 * flops / all /
	       rates_flops(rates, step.type, step.tf32), 100 * PREDICT_MATMUL,
	       100 * predict_attention_share(rates, &step),
	       100 * PREDICT_MEMORY);
	printf("  %-24s %6s %12s %12s %10s %6s\n", "operator", "times",
	       "GFLOP", "MiB", "ms", "share");
	for (int i = 0; i < count; i++)
		printf("  %-24s %6.0f %12.1f %12.1f %10.3f %5.1f%%\n",
		       rows[i].name, rows[i].times,
		       rows[i].times * rows[i].flops / 1e9,
		       rows[i].times * rows[i].bytes / (1 << 20),
		       rows[i].times * rows[i].seconds * 1e3,
		       100 * rows[i].times * rows[i].seconds / all);
}

void run_print_plan(const struct run *run)
{
	const struct trainer *trainer = run->trainer;
	const char *gpu = run->options.gpu ? run->options.gpu : run->gpu;
	const struct rates *rates = rates_find(gpu);

	print_model(trainer);
	print_step(trainer);
	print_all_memory(trainer, rates);
	print_buckets(trainer);
	if (rates && run->options.model == MODEL_GPT)
		print_prediction(trainer, rates);
}

/* ---- the GPUs of a run that trains */

/* The numbers of a rank; 0: unknown. */
struct expected {
	double peak;			/* of its GPU, FLOP/s */
	double seconds;			/* of its step */
};

/* Returns what all ranks expect; the caller's to free. */
static struct expected *exchange(struct run *run)
{
	struct collective *collective = &run->collective;
	const struct rates *rates = rates_find(run->gpu);
	struct expected mine = { 0 };
	struct expected *all = calloc((size_t)collective->size, sizeof(*all));
	struct predict_run step = describe_step(run->trainer);

	if (!all)
		collective->table->abort(collective, "no memory for what the "
					 "ranks' GPUs can do");
	if (rates) {
		mine.peak = rates_flops(rates, run->options.dtype,
					run->options.tf32);
		mine.seconds = predict_seconds(rates, &step);
	}
	collective->table->agree(collective, &mine, all, sizeof(mine));
	return all;
}

void run_expect_rates(struct run *run)
{
	struct expected *all, sum = { 0 };
	int unknown = -1;

	if (run->options.device != COMPUTE_CUDA ||
	    run->options.model != MODEL_GPT)
		return;
	all = exchange(run);
	for (int rank = run->collective.size - 1; rank >= 0; rank--) {
		sum.peak += all[rank].peak;
		sum.seconds = fmax(sum.seconds, all[rank].seconds);
		if (all[rank].peak == 0)
			unknown = rank;
	}
	free(all);
	if (unknown >= 0 && run->collective.rank == 0)
		printf("what the GPU of rank %d on %s can do is not known, so "
		       "there is no MFU\n", unknown, run->hosts[unknown]);
	else if (unknown < 0 && run->progress)
		progress_set_rates(run->progress, sum.peak, sum.seconds);
}

