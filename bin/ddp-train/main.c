/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-train: data-parallel training, one process a rank.  Each rank computes
 * the gradient of its own part of the global batch; the sum over all ranks,
 * formed while the backward pass still runs, makes it the gradient of the
 * whole; every rank takes the same step.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "collective.h"
#include "config.h"
#include "data.h"
#include "fold.h"
#include "layout/error.h"
#include "layout/text.h"
#include "model.h"
#include "train_options.h"
#include "report.h"
#include "tool/agree.h"
#include "tool/tool.h"
#include "trainer.h"
#include "world.h"

struct run {
	struct options options, asked;	/* complete; as they were given */
	struct collective collective;
	struct data data;
	struct trainer *trainer;
	struct report *report;		/* rank 0's */
	char (*hosts)[WORLD_CELL];	/* of all ranks */
	double begun, opened;		/* moments */
	bool quiet;			/* another process says the error */
};

/* The file is bad on this rank, at a moment when the others do not listen. */
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

/* What --log would replace of what is in use, or NULL. */
static const char *log_replaces(const struct run *run)
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

static int open_report(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	const char *in_use;
	struct report_plan plan = {
		.log = options->log, .steps = options->steps,
		.samples = options->global_batch,
		.tokens = options->global_batch * options->shape.context,
		.ranks = run->collective.size
	};

	if (run->collective.rank != 0 || options->plan)
		return 0;
	in_use = options->log ? log_replaces(run) : NULL;
	if (in_use)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--log %s is "
				     "%s, which it would replace; name "
				     "another file", options->log, in_use);
	return report_open(&run->report, &plan, error);
}

/* Everything that can fail on one rank alone comes before the roll call. */
static int prepare(struct run *run, struct ddp_error *error)
{
	run->asked = run->options;
	if (options_complete(&run->options, run->collective.size, error) < 0 ||
	    open_data(run, error) < 0)
		return -1;
	run->trainer = trainer_create(&run->options, &run->collective,
				      &run->data, error);
	return run->trainer ? open_report(run, error) : -1;
}

static void finish(struct run *run)
{
	trainer_destroy(run->trainer);
	if (run->collective.table)
		run->collective.table->close(&run->collective);
	data_close(&run->data);
	free(run->hosts);
}

/* Fail alone, after the ranks have agreed for the last time. */
static void give_up(struct run *run, const struct ddp_error *error)
{
	report_close(run->report);
	run->collective.table->abort(&run->collective, error->text);
}

/* All ranks' shares, for each of them. */
static void agree(struct run *run, const struct share *mine)
{
	run->collective.table->agree(&run->collective, mine,
				     run->trainer->shares, sizeof(*mine));
}

/*
 * Whether all have the same parameters after a step; the same on each rank.
 * Where the data has shrunk it ends the run.
 */
static int compare_parameters(struct run *run, uint64_t step,
			      struct ddp_error *error)
{
	const struct share *shares = run->trainer->shares;
	struct share mine = { .hash = trainer_hash_parameters(run->trainer) };

	data_check_size(&run->data);
	agree(run, &mine);
	for (int rank = 1; rank < run->collective.size; rank++)
		if (shares[rank].hash != shares[0].hash)
			return ddp_error_set(error, DDP_ERROR_SYSTEM,
				"the parameters of rank %d on %s are not "
				"those of rank 0 on %s after step %" PRIu64
				"; test the memory of both nodes and what "
				"lies between them", rank, run->hosts[rank],
				run->hosts[0], step);
	return 0;
}

/*
 * Which ranks have a loss that is no number, the shares say.  The gradient is
 * the sum of all ranks', the same on each: it names none of them.
 */
static int stop_for_loss(const struct run *run, uint64_t step,
			 struct ddp_error *error)
{
	const struct share *shares = run->trainer->shares;
	int size = run->collective.size, rank = 0;

	while (rank < size && isfinite(shares[rank].loss))
		rank++;
	if (rank == size)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "the gradient "
				     "is no longer a number at step %" PRIu64
				     "; choose a smaller --lr", step);
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the loss is no longer "
			     "a number at step %" PRIu64 ", first on rank %d "
			     "on %s; choose a smaller --lr", step, rank,
			     run->hosts[rank]);
}

/* What the ranks' shares say together. */
static void sum_up(const struct run *run, struct report_step *report)
{
	const struct share *shares = run->trainer->shares;
	int size = run->collective.size;
	double *losses = run->trainer->rank_losses;

	for (int rank = 0; rank < size; rank++) {
		losses[rank] = shares[rank].loss;
		report->busy += shares[rank].busy / size;
		report->waited += shares[rank].exposed / size;
		report->exposed = fmax(report->exposed, shares[rank].exposed);
		if (shares[rank].busy <= report->slowest_busy)
			continue;
		report->slowest_busy = shares[rank].busy;
		report->slowest = rank;
	}
	report->loss = fold_doubles(losses, size);
	report->norm = shares[0].norm;
	report->host = run->hosts[report->slowest];
}

/* One step; *bad counts those in a row that were skipped. */
static int step(struct run *run, uint64_t number, uint64_t *bad,
		struct ddp_error *error)
{
	const struct options *options = &run->options;
	struct trainer *trainer = run->trainer;
	struct report_step report = {
		.step = number, .lr = trainer_find_lr(options, number)
	};
	struct share share = { 0 };
	double begin = clock_seconds();

	trainer_compute_gradient(trainer, number, &share);
	agree(run, &share);
	sum_up(run, &report);
	report.skipped = !isfinite(report.loss) || !isfinite(report.norm);
	*bad = report.skipped ? *bad + 1 : 0;
	if (*bad && *bad >= options->max_bad_steps)
		return stop_for_loss(run, number, error);
	if (!report.skipped)
		trainer_update(trainer, number, report.norm);
	if (trainer->device.table->check(&trainer->device, error) < 0)
		give_up(run, error);
	report.seconds = clock_seconds() - begin;
	report.exposed = fmin(report.exposed, report.seconds);
	report.waited = fmin(report.waited, report.seconds);
	if (run->report && report_step(run->report, &report, error) < 0)
		give_up(run, error);
	if (options->check_every && (number % options->check_every == 0 ||
				     number == options->steps))
		return compare_parameters(run, number, error);
	return 0;
}

static int train(struct run *run, struct ddp_error *error)
{
	const struct options *options = &run->options;
	uint64_t bad = 0;

	for (uint64_t number = 1; number <= options->steps; number++) {
		double loss;

		if (step(run, number, &bad, error) < 0)
			return -1;
		if (!options->eval_every || number % options->eval_every)
			continue;
		loss = trainer_evaluate(run->trainer);
		if (run->report &&
		    report_eval(run->report, number, loss, error) < 0)
			give_up(run, error);
	}
	if (!run->report)
		return 0;
	if (report_end(run->report, error) < 0)
		give_up(run, error);
	if (options->sample)
		trainer_print_sample(run->trainer, options->sample);
	return 0;
}

/* What must be the same on all ranks: first the data, for others follow it. */
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
	double now = clock_seconds();

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
 * What follows the meeting of the ranks; the same result on each of them, but
 * that rank 0's output may fail at the very end.
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
		if (train(run, error) < 0)
			return -1;
	}
	return tool_flush(error);
}

int main(int argc, char **argv)
{
	struct run run = { .begun = clock_seconds() };
	struct ddp_error mine = { 0 }, error = { 0 };
	int usable = options_parse(&run.options, argc, argv, &mine) == 0;
	int failed = 1;

	tool_start();
	if (run.options.help || run.options.version)
		return tool_options_answer(&train_options, run.options.help);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* A rank that failed alone meets the others all the same: to say so. */
	if (world_open(&run.collective, run.options.backend, &run.quiet,
		       usable ? &mine : NULL) == 0 && usable) {
		run.opened = clock_seconds();
		prepare(&run, &mine);
	}
	if (run.collective.table) {
		failed = work(&run, &mine, &error) < 0;
		mine = error;
	}
	report_close(run.report);
	if (failed && run.collective.rank == 0 && !run.quiet)
		tool_print_error("ddp-train", &mine);
	finish(&run);
	if (!failed)
		return 0;
	return mine.code == DDP_ERROR_ARGUMENT ? 2 : 1;
}
