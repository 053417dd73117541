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
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "layout/clock.h"
#include "layout/error.h"
#include "layout/text.h"
#include "model.h"
#include "progress.h"
#include "run.h"
#include "tool/agree.h"
#include "tool/tool.h"
#include "trainer.h"

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

/* Which file in use --log would replace, or NULL. */
static const char *find_replaced(const struct run *run)
{
	static const char *const streams[] = {
		"the file of the standard output",
		"the file of the standard error"
	};
	const char *path = run->options.log;
	struct stat log, stream;

	if (data_is_path(&run->data, path))
		return "the training data";
	if (stat(path, &log) < 0 || !S_ISREG(log.st_mode))
		return NULL;
	for (int i = 0; i < 2; i++)
		if (fstat(STDOUT_FILENO + i, &stream) == 0 &&
		    stream.st_dev == log.st_dev && stream.st_ino == log.st_ino)
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
		.ranks = run->collective.size
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

/* All that can fail on one rank alone is done before the roll call. */
static int prepare(struct run *run, struct ddp_error *error)
{
	run->asked = run->options;
	if (options_complete(&run->options, run->collective.size, error) < 0 ||
	    open_data(run, error) < 0)
		return -1;
	run->trainer = trainer_create(&run->options, &run->collective,
				      &run->data, error);
	return run->trainer ? open_progress(run, error) : -1;
}

static void finish(struct run *run)
{
	trainer_destroy(run->trainer);
	if (run->collective.table)
		run->collective.table->close(&run->collective);
	data_close(&run->data);
	free(run->hosts);
}

/* What must be the same on all ranks: first the data, as more depends on it. */
static void describe(struct run *run, char *text, size_t size)
{
	const struct options *options = &run->asked;
	char data[80] = "-";
	size_t length;

	if (options->data)
		snprintf(data, sizeof(data), "of %zu bytes, checksum %016"
			 PRIx64, run->data.size, data_hash(&run->data));
	length = (size_t)snprintf(text, size, "--%s %s\n",
				  options->format == DATA_TOKENS ? "tokens" :
				  "data", data);
	length += tool_options_describe(&train_options, options, text + length,
					size - length);
	if (length >= size)
		run->collective.table->abort(&run->collective, "no room for "
					     "the options that are compared");
}

static void print_begin(const struct run *run)
{
	const struct options *options = &run->options;
	const struct model *model = run->trainer->model;
	double now = ddp_clock_seconds();

	printf("backend %s, model %s", run->collective.table->name,
	       model->name);
	if (options->preset)
		printf(" %s", options->preset);
	printf(" of %zu parameters, %" PRIu64 " samples a step; ready in "
	       "%.2f s, %.2f s of it backend\n", model->param_count,
	       options->global_batch, now - run->begun,
	       run->opened - run->begun);
}

/*
 * All that the ranks do together. The result is the same on each of them,
 * unless rank 0's output fails at the very end.
 */
static int work(struct run *run, const struct ddp_error *mine,
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
		describe(run, settings, sizeof(settings));
	if (world_call_roll(&run->collective, settings, mine, run->hosts,
			    error) < 0)
		return -1;
	if (run->options.plan) {
		if (first)
			trainer_print_plan(run->trainer);
	} else {
		if (trainer_begin(run->trainer, error) < 0)
			return -1;
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
	int usable = options_parse(&run.options, argc, argv, &mine) == 0;
	int failed = 1;

	tool_start();
	if (run.options.help || run.options.version)
		return tool_options_answer(&train_options, run.options.help);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A rank that has failed meets the others too, to tell them. */
	if (world_open(&run.collective, &run.options, &run.quiet,
		       usable ? &mine : NULL) == 0 && usable) {
		run.opened = ddp_clock_seconds();
		prepare(&run, &mine);
	}
	if (run.collective.table) {
		failed = work(&run, &mine, &error) < 0;
		mine = error;
	}
	progress_close(run.progress);
	if (failed && run.collective.rank == 0 && !run.quiet)
		tool_print_error("ddp-train", &mine);
	finish(&run);
	if (!failed)
		return 0;
	return mine.code == DDP_ERROR_ARGUMENT ? 2 : 1;
}
