/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds a run against what its GPUs can do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/expect.h"
#include "log/progress.h"
#include "run/predict.h"
#include "run/run.h"
#include "step/trainer.h"

/* The numbers of a rank; 0: unknown. */
struct expected {
	double peak;			/* of its GPU, FLOP/s */
	double seconds;			/* of its step */
};

double expect_flops(const struct options *options)
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

void expect_rates(struct run *run)
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

void expect_print(const struct trainer *trainer, const struct rates *rates)
{
	struct predict_run step = describe_step(trainer);
	struct predict_row rows[PREDICT_ROWS];
	int count = predict_step(rates, &step, rows);
	double all = predict_seconds(rates, &step);
	double flops = expect_flops(trainer->options) /
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
