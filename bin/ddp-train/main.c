/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-train: data-parallel training, one process a rank.  Each rank computes
 * the gradient of its own batch; one sum over all ranks makes it the gradient
 * of the global batch; every rank takes the same step.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <cblas.h>

#include "comm.h"
#include "config.h"
#include "data.h"
#include "layout/error.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "roll.h"
#include "world.h"

struct run {
	struct options options;
	struct world world;
	struct data data;
	struct log log;			/* rank 0's */
	float *param;
	float *grad;			/* the loss follows the gradients */
	float *work;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_error(const struct ddp_error *error)
{
	fprintf(stderr, "ddp-train: %s\n", error->text);
}

/* Everything that can fail on one rank alone comes before the roll call. */
static int prepare(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	const struct model *model = options->model;

	if (options->data && data_open(&run->data, options->data,
				       model->data_size, error) < 0)
		return -1;
	run->param = calloc(model->param_count, sizeof(float));
	run->grad = calloc(model->param_count + 1, sizeof(float));
	run->work = calloc(model->work_count * options->batch, sizeof(float));
	if (!run->param || !run->grad || !run->work)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for "
				     "--batch %" PRIu64 "; choose a smaller "
				     "one", options->batch);
	if (!options->log || run->world.rank != 0)
		return 0;
	if (data_is(&run->data, options->log))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--log %s is "
				     "the --data file, which it would replace",
				     options->log);
	return log_open(&run->log, options->log, error);
}

static void finish(struct run *run)
{
	data_close(&run->data);
	log_close(&run->log);
	free(run->param);
	free(run->grad);
	free(run->work);
}

/* Rank 0's: the line of a step on stdout and in the log. */
static void report(struct run *run, const struct log_step *step)
{
	uint64_t steps = run->options.steps;
	uint64_t interval = steps < 20 ? 1 : steps / 10;
	struct ddp_error error;

	if (step->step == 1 || step->step % interval == 0 ||
	    step->step == steps)
		printf("step %5" PRIu64 "  loss %.4f\n", step->step,
		       step->loss);
	if (log_write(&run->log, step, &error) < 0) {
		print_error(&error);
		run->world.comm->abort(1);
	}
	if (step->step == steps)
		printf("%" PRIu64 " samples in %.2f s: %.0f samples/s\n",
		       step->samples, step->seconds,
		       (double)step->samples / step->seconds);
}

static int train(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	const struct model *model = options->model;
	const struct comm *comm = run->world.comm;
	int rank = run->world.rank, size = run->world.size;
	uint64_t global_batch = options->batch * (uint64_t)size;
	size_t count = model->param_count;
	double begin;

	/* Seeds differ: that all ranks begin alike is the broadcast's work. */
	model->init(run->param, options->seed + (uint64_t)rank);
	comm->broadcast(run->param, count);
	begin = now();
	for (uint64_t step = 1; step <= options->steps; step++) {
		struct batch samples = {
			.data = &run->data, .seed = options->seed,
			.first = (step - 1) * global_batch +
				 (uint64_t)rank * options->batch,
			.count = (int)options->batch
		};
		double loss = model->gradient(run->param, &samples, run->work,
					      run->grad);

		run->grad[count] = (float)loss;
		comm->sum(run->grad, count + 1);
		loss = (double)run->grad[count] / size;
		if (!isfinite(loss))
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
					     "the loss is no longer a number "
					     "at step %" PRIu64 "; choose a "
					     "smaller --lr", step);
		cblas_saxpy((int)count, (float)(-options->lr / size),
			    run->grad, 1, run->param, 1);
		if (rank == 0)
			report(run, &(struct log_step){
				.step = step, .loss = loss, .lr = options->lr,
				.samples = step * global_batch,
				.seconds = now() - begin });
	}
	return 0;
}

/* One line for the reader, and for the roll call to compare. */
static void describe(const struct run *run, char *text, size_t size)
{
	const struct options *options = &run->options;
	char data[48] = "";

	if (run->data.bytes)
		snprintf(data, sizeof(data), " on %zu bytes", run->data.size);
	snprintf(text, size, "model %s%s, %" PRIu64 " steps, batch %" PRIu64
		 ", lr %.9g, seed %" PRIu64, options->model->name, data,
		 options->steps, options->batch, options->lr, options->seed);
}

/* What follows the meeting of the ranks; the same result on each of them. */
static int work(struct run *run, const struct ddp_error *mine,
		struct ddp_error *error)
{
	char settings[256] = "";

	if (mine->code == DDP_ERROR_NONE)
		describe(run, settings, sizeof(settings));
	if (roll_call(&run->world, settings, mine, error) < 0)
		return -1;
	if (run->world.rank == 0)
		printf("backend %s, %s\n", run->world.comm->name, settings);
	if (train(run, error) < 0)
		return -1;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "cannot write the standard output");
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	struct ddp_error mine = { 0 }, error = { 0 };
	int usable = options_parse(&run.options, argc, argv, &mine) == 0;
	int failed = 1;

	if (run.options.help || run.options.version) {
		fputs(run.options.help ? options_help() :
		      "ddp-train " DDP_VERSION "\n", stdout);
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A rank that failed alone meets the others all the same: to say so. */
	if (world_open(&run.world, run.options.backend,
		       usable ? &mine : NULL) == 0 && usable)
		prepare(&run, &mine);
	if (run.world.comm) {
		failed = work(&run, &mine, &error) < 0;
		mine = error;
	}
	if (failed && run.world.rank == 0 && !run.world.quiet)
		print_error(&mine);
	if (run.world.comm)
		run.world.comm->close();
	finish(&run);
	if (!failed)
		return 0;
	return mine.code == DDP_ERROR_ARGUMENT ? 2 : 1;
}
