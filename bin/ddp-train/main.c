/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-train: data-parallel training, one process a rank. Each rank computes
 * the gradient of its own part of the global batch; while the backward pass
 * still runs, the gradients of all ranks are summed; every rank takes the same
 * step.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "model.h"
#include "checkpoint/checkpoint.h"
#include "data/llmc.h"
#include "log/progress.h"
#include "model.h"
#include "run/module.h"
#include "run/run.h"
#include "step/trainer.h"
#include "tool/ranks.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

enum { NOTE = 192 };		/* bytes of a device's note that are printed */

/* The file is bad on this rank, while the other ranks do not wait for it. */
static void end_for_data(void *context, const char *text)
{
	struct run *run = context;
	struct collective *collective = &run->collective;
	char host[WORLD_CELL] = "", line[PATH_MAX + 640];

	gethostname(host, sizeof(host) - 1);
	if (collective->size > 1)
		snprintf(line, sizeof(line), "rank %d on %s: %s",
			 collective->rank, host, text);
	else
		snprintf(line, sizeof(line), "%s", text);
	collective->table->abort(collective, ddp_text_quote(line));
}

static int open_data(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	const struct collective *collective = &run->collective;

	if (!options->data)
		return 0;
	if (data_open(&run->data, options->data, options->format,
		      options->shape.context + 1, end_for_data, run,
		      error) < 0)
		return -1;
	return data_check(&run->data, options->shape.vocab, collective->rank,
			  collective->size, error);
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Returns the file in use that --log would replace, or NULL. */
static const char *find_replaced(const struct run *run)
{
	static const char *const streams[] = {
		"the file of the standard output",
		"the file of the standard error"
	};
	const char *path = run->options.log, *init = run->options.init;
	struct stat log, used;

	if (data_is_path(&run->data, path))
		return "the training data";
	if (stat(path, &log) < 0 || !S_ISREG(log.st_mode))
		return NULL;
	if (init && stat(init, &used) == 0 && is_same(&used, &log))
		return "the file of --init";
	for (int i = 0; i < 2; i++)
		if (fstat(STDOUT_FILENO + i, &used) == 0 &&
		    is_same(&used, &log))
			return streams[i];
	return NULL;
}

static int open_progress(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	const char *in_use;
	struct progress_plan plan = {
		.log = options->log, .steps = options->steps,
		.samples = options->global_batch,
		.tokens = options->global_batch * options->shape.context,
		.ranks = run->collective.size,
		.flops = run_count_flops(options),
		.done = checkpoint_find_step(options),
		.seconds = checkpoint_find_seconds(options)
	};

	if (run->collective.rank != 0 || options->plan)
		return 0;
	in_use = options->log ? find_replaced(run) : NULL;
	if (in_use)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--log %s is "
				     "%s, which it would replace; name "
				     "another file", options->log, in_use);
	return progress_open(&run->progress, &plan, error);
}

/* Describes the data, as the ranks compare it and as a checkpoint has it. */
static void describe_data(struct run *run)
{
	const struct options *options = &run->options;
	const char *name = options->format == DATA_TOKENS ? "tokens" : "data";

	if (options->data)
		snprintf(run->learned, sizeof(run->learned), "--%s of %zu "
			 "bytes, checksum %016" PRIx64, name, run->data.size,
			 data_hash(&run->data));
	else
		snprintf(run->learned, sizeof(run->learned), "--%s -", name);
}

/* All that can fail on one rank alone is done before the roll call. */
static int prepare(struct run *run, struct ddp_error *error)
{
	struct options *options = &run->options;

	if (options->init && llmc_complete_shape(options->init, &options->shape,
						 error) < 0)
		return -1;
	run->asked = *options;
	if (options_complete(options, run->collective.size, error) < 0 ||
	    open_data(run, error) < 0)
		return -1;
	describe_data(run);
	if (checkpoint_compare(options, run->learned, error) < 0)
		return -1;
	run->trainer = trainer_create(options, &run->collective, &run->data,
				      error);
	if (!run->trainer)
		return -1;
	if (options->device == COMPUTE_CUDA)
		module_name_gpu(run->gpu, sizeof(run->gpu));
	return open_progress(run, error);
}

/*
 * Finds for --resume the newest checkpoint that all ranks together find whole.
 * Returns true if this rank's options are usable then. Collective.
 */
static bool check_checkpoint(struct run *run, bool usable, int argc,
			     char **argv, struct ddp_error *error)
{
	int broken;

	while ((broken = checkpoint_check(&run->collective,
					  usable ? &run->options : NULL,
					  error)) > 0) {
		checkpoint_free_manifest(run->options.from);
		usable = options_parse(&run->options, argc, argv, error) == 0;
	}
	return usable && broken == 0;
}

static void finish(struct run *run)
{
	saver_destroy(run->saver);
	/* The collective uses the trainer's device, so close it first. */
	if (run->collective.table)
		run->collective.table->close(&run->collective);
	trainer_destroy(run->trainer);
	data_close(&run->data);
	free(run->hosts);
	checkpoint_free_manifest(run->options.from);
}

/* Writes what all ranks must share: first the data, as more depends on it. */
static void describe(struct run *run, char *text, size_t size)
{
	const struct options *options = &run->asked;
	size_t length;

	length = (size_t)snprintf(text, size, "%s\n--resume from step %" PRIu64
				  "\n", run->learned,
				  checkpoint_find_step(options));
	/* Another model of GPU could multiply in another order. */
	if (options->deterministic && *run->gpu && length < size)
		length += (size_t)snprintf(text + length, size - length,
					   "--deterministic on a GPU %s\n",
					   run->gpu);
	if (length < size)
		length += tool_options_describe(&train_options, options,
						text + length, size - length);
	if (length >= size)
		run->collective.table->abort(&run->collective, "no room for "
					     "the options that are compared");
}

/* Prints a note and who has it, if it is not that of an earlier rank. */
static void print_note(const struct run *run, const char (*notes)[NOTE],
		       int rank)
{
	int first = 0, count = 0;

	while (strcmp(notes[first], notes[rank]) != 0)
		first++;
	if (first < rank || !*notes[rank])
		return;
	for (int i = rank; i < run->collective.size; i++)
		count += strcmp(notes[i], notes[rank]) == 0;
	if (count < run->collective.size)
		printf("rank %d on %s", rank, run->hosts[rank]);
	if (count > 1 && count < run->collective.size)
		printf(" and %d other%s", count - 1, count > 2 ? "s" : "");
	printf("%s%s\n", count < run->collective.size ? ": " : "", notes[rank]);
}

/* Prints the notes of the ranks' devices; their processors may differ. */
static void print_notes(struct run *run)
{
	struct collective *collective = &run->collective;
	const struct device *device = &run->trainer->device;
	const char *text = device->table->note(device);
	char mine[NOTE] = "", (*all)[NOTE];

	all = calloc((size_t)collective->size, sizeof(*all));
	if (!all)
		collective->table->abort(collective, "no memory for the notes "
					 "of the ranks' devices");
	snprintf(mine, sizeof(mine), "%s", text ? text : "");
	collective->table->agree(collective, mine, all, sizeof(mine));
	for (int rank = 0; collective->rank == 0 && rank < collective->size;
	     rank++)
		print_note(run, all, rank);
	free(all);
}

static void print_begin(const struct run *run)
{
	const struct options *options = &run->options;
	const struct model *model = run->trainer->model;
	double now = ddp_clock_seconds();

	printf("backend %s, ", run->collective.table->name);
	if (options->device == COMPUTE_CUDA)
		printf("device cuda (%s), ", run->gpu);
	printf("model %s", model->name);
	if (options->preset || options->init)
		printf(" %s", options->init ? "of --init" : options->preset);
	printf(" of %zu parameters, %" PRIu64 " samples a step; ready in "
	       "%.2f s, %.2f s of it to meet the other ranks\n",
	       model->param_count, options->global_batch, now - run->begun,
	       run->opened - run->begun);
	checkpoint_print_begin(options);
}

/*
 * Gives the ranks their parameters, or those of a checkpoint. Sets run->stopped
 * if a signal has come. Collective; returns as trainer_begin().
 */
static int begin(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	struct ddp_error mine = { 0 };
	struct saver_plan plan = {
		.options = options, .collective = &run->collective,
		.trainer = run->trainer, .progress = run->progress,
		.data = run->learned, .id = run->id
	};

	if (trainer_begin(run->trainer, error) < 0)
		return -1;
	if (!options->checkpoint)
		return 0;
	if (options->data) {
		checkpoint_sum_data(&run->collective, &run->data,
				    run->data_sum);
		plan.data_sum = run->data_sum;
		checkpoint_compare_sum(options, run->data_sum, &mine);
	}
	if (options->from && mine.code == DDP_ERROR_NONE)
		checkpoint_load(options, run->trainer, &mine);
	run->stopped = checkpoint_must_stop(&run->collective);
	if (run->stopped)
		return 0;
	if (mine.code == DDP_ERROR_NONE)
		saver_create(&run->saver, &plan, &mine);
	if (world_share_errors(&run->collective, &mine, error) < 0)
		return -1;
	if (options->from)
		trainer_share_parameters(run->trainer);
	return 0;
}

static int stop_early(const struct run *run, struct ddp_error *error)
{
	if (run->collective.rank == 0)
		puts("stopped before the first step by a signal; there is "
		     "nothing to save");
	return tool_flush(error);
}

/*
 * All that the ranks do together. The result is the same on each of them,
 * unless rank 0's output fails at the very end.
 */
static int work(struct run *run, struct ddp_error *mine,
		struct ddp_error *error)
{
	bool first = run->collective.rank == 0;
	char settings[TOOL_SETTINGS_SIZE] = "";

	run->hosts = calloc((size_t)run->collective.size,
			    sizeof(*run->hosts));
	if (!run->hosts)
		run->collective.table->abort(&run->collective, "no memory "
					     "for the ranks' names");
	if (mine->code == DDP_ERROR_NONE)
		checkpoint_meet(&run->collective, &run->options, run->id,
				&run->stopped, mine);
	else
		run->stopped = checkpoint_must_stop(&run->collective);
	if (run->stopped)
		return stop_early(run, error);
	if (mine->code == DDP_ERROR_NONE)
		describe(run, settings, sizeof(settings));
	if (world_call_roll(&run->collective, settings, mine, run->hosts,
			    error) < 0)
		return -1;
	if (run->options.plan) {
		if (first)
			run_print_plan(run);
	} else {
		if (begin(run, error) < 0)
			return -1;
		if (run->stopped)
			return stop_early(run, error);
		print_notes(run);
		run_expect_rates(run);
		if (first)
			print_begin(run);
		if (run_train(run, error) < 0)
			return -1;
	}
	return tool_flush(error);
}

int main(int argc, char **argv)
{
	struct run run = { .begun = ddp_clock_seconds() };
	struct ddp_error mine = { 0 }, error = { 0 };
	int failed = 1;
	bool usable;

	tool_start();
	usable = options_parse(&run.options, argc, argv, &mine) == 0;
	if (run.options.help || run.options.version)
		return tool_options_answer(&train_options, run.options.help);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A rank that has failed meets the others too, to tell them. */
	usable = world_open(&run.collective, &run.options, &run.quiet,
			    usable ? &mine : NULL) == 0 && usable;
	run.opened = ddp_clock_seconds();
	if (run.collective.table &&
	    check_checkpoint(&run, usable, argc, argv, &mine))
		prepare(&run, &mine);
	if (run.collective.table) {
		failed = work(&run, &mine, &error) < 0;
		mine = error;
	}
	progress_close(run.progress);
	/* All ranks end for this error, and rank 0 prints it. */
	if (failed)
		tool_record_failure(mine.text);
	if (failed && run.collective.rank == 0 && !run.quiet)
		tool_print_error("ddp-train", &mine);
	finish(&run);
	if (!failed)
		return run.stopped ? CHECKPOINT_STOPPED : 0;
	if (run.diverged)
		return RUN_DIVERGED;
	return mine.code == DDP_ERROR_ARGUMENT ? 2 : 1;
}
