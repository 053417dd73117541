/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults FAULT RANK STEP OPTIONS...: a run with ddp-train's options on the real
 * device, but for a FAKE fault on one rank, from a step's update on:
 *
 * norm, skip, scale: the update has another norm; is skipped; has another loss
 * scale.
 * row: the update is skipped, and of the first and the third such step the loss
 * is no number, so that the second is an overflow.
 * loss: the device fails in a loss alone, which is an evaluation's.
 * logits: it fails in a product, which is a sample's after the last step.
 * order: no fault, but a line with the order in which the host deals with the
 * device: "+N" starts step N, "-N" looks for its results, and "wait" waits for
 * all work.
 *
 * Each rank prints "rank N: " and the error of the run.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp_error.h"
#include "data/data.h"
#include "log/progress.h"
#include "run/run.h"
#include "step/trainer.h"
#include "tool/ranks.h"
#include "tool/tool.h"

static struct run run;
static struct device_table fake;
static const char *fault;
static int at, steps;			/* the fault's; that came */
static bool mine, failed;
static char order[256];			/* what came so far */
static int ends[2];			/* of which steps the events are */

static bool is_now(const char *name)
{
	return mine && strcmp(fault, name) == 0 && steps >= at;
}

/* One that repeats the last one is left out. */
static void note(const char *text)
{
	size_t length = strlen(order), part = strlen(text);

	if (length < part || strcmp(order + length - part, text) != 0)
		snprintf(order + length, sizeof(order) - length, "%s", text);
}

static void note_step(char what, int step)
{
	char text[16];

	snprintf(text, sizeof(text), " %c%d", what, step);
	note(text);
}

static void take_step(struct device *device, const struct op_step *op)
{
	steps++;
	note_step('+', steps);
	device_cpu.step(device, op);
	if (is_now("norm"))
		op->state->norm = nextafter(op->state->norm, 0);
	if (is_now("skip") || is_now("row"))
		op->state->skip = 1;
	if (is_now("scale"))
		op->state->loss_scale *= 2;
}

static void classify(struct device *device, const struct op_classifier *op)
{
	int step = steps + 1;

	failed |= !op->dx && is_now("loss");
	device_cpu.classifier(device, op);
	if (mine && strcmp(fault, "row") == 0 && (step == at || step == at + 2))
		*op->loss = NAN;
}

static void multiply(struct device *device, const struct op_matmul *op)
{
	failed |= is_now("logits");
	device_cpu.matmul(device, op);
}

static int check(struct device *device, struct ddp_error *error)
{
	(void)device;
	note(" wait");
	if (!failed)
		return 0;
	if (error)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "a FAKE failure");
	return -1;
}

static bool is_of_step(int event)
{
	return event >= STEP_EVENTS && event < COLLECTIVE_EVENTS;
}

static void record(struct device *device, int event, enum device_queue queue)
{
	if (is_of_step(event))
		ends[(event - STEP_EVENTS) / STEP_SET] = steps;
	device_cpu.record(device, event, queue);
}

static int query(struct device *device, int event)
{
	(void)device;
	if (is_of_step(event))
		note_step('-', ends[(event - STEP_EVENTS) / STEP_SET]);
	return failed ? -1 : 1;
}

static void give_fault(struct device *device)
{
	fake = *device->table;
	fake.step = take_step;
	fake.classifier = classify;
	fake.matmul = multiply;
	fake.check = check;
	fake.record = record;
	fake.query = query;
	device->table = &fake;
}

static void end_for_data(void *context, const char *text)
{
	(void)context;
	run.collective.table->abort(&run.collective, text);
}

static int begin(int argc, char **argv, struct ddp_error *error)
{
	struct options *options = &run.options;
	struct ddp_error none = { 0 };

	if (options_parse(options, argc, argv, error) < 0 ||
	    world_open(&run.collective, options, &run.quiet, error) < 0 ||
	    options_complete(options, run.collective.size, error) < 0 ||
	    data_open(&run.data, options->data, options->format,
		      options->shape.context + 1, end_for_data, NULL,
		      error) < 0)
		return -1;
	run.hosts = calloc((size_t)run.collective.size, sizeof(*run.hosts));
	run.trainer = trainer_create(options, &run.collective, &run.data,
				     error);
	if (!run.hosts || !run.trainer ||
	    world_call_roll(&run.collective, "", &none, run.hosts,
			    error) < 0 ||
	    trainer_begin(run.trainer, error) < 0)
		return -1;
	give_fault(&run.trainer->device);
	return run.collective.rank != 0 ? 0 :
	       progress_open(&run.progress, &(struct progress_plan){
			.steps = options->steps,
			.samples = options->global_batch,
			.tokens = options->global_batch *
				  options->shape.context,
			.ranks = run.collective.size }, error);
}

int main(int argc, char **argv)
{
	struct ddp_error error = { 0 };

	if (argc < 5)
		return 2;
	fault = argv[1];
	at = atoi(argv[3]);
	argv[3] = argv[0];
	if (begin(argc - 3, argv + 3, &error) < 0) {
		fprintf(stderr, "faults: %s\n", error.text);
		return 2;
	}
	mine = run.collective.rank == atoi(argv[2]);
	run_train(&run, &error);
	progress_close(run.progress);
	printf("rank %d: %s\n", run.collective.rank, error.text);
	if (strcmp(fault, "order") == 0)
		printf("order:%s\n", order);
	trainer_destroy(run.trainer);
	run.collective.table->close(&run.collective);
	data_close(&run.data);
	free(run.hosts);
	return 0;
}
