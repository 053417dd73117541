/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed CASE OPTIONS...: a trainer's steps with ddp-train's options and a FAKE
 * model, whose gradients are set here: small whole numbers, so that each sum
 * is known by hand. On one rank or several. Prints TAP.
 *
 * sums: what ranks and batches add up to, to the bit. overflow: one rank alone
 * has an infinite gradient in one step; the others' steps are AdamW's in fp64.
 * exchange: the ranks' gradients of that step are finite in fp16, but not their
 * sum.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "ddp_error.h"
#include "model.h"
#include "run/world.h"
#include "step/sum_tree.h"
#include "step/trainer.h"

enum { MOST = 1024, STEPS = 6, SKIPPED = 3 };

/* A gradient's unit: times fp16's first loss scale it is 1/2. */
static const double unit = 0x1p-17;

static struct options options;
static struct collective collective;
static struct trainer *trainer;
static struct data no_data;
static bool overflow, exchange;		/* the case */
static int step, chunk;			/* that runs */
static int tests, failures;

static void die(const struct ddp_error *error)
{
	collective.table->abort(&collective, error->text);
}

/* A line of TAP for all ranks. */
static void ok(bool mine, const char *name)
{
	bool all[64], good = true;

	collective.table->agree(&collective, &mine, all, sizeof(mine));
	for (int rank = 0; rank < collective.size; rank++)
		good = good && all[rank];
	failures += !good;
	tests++;
	if (collective.rank == 0)
		printf("%s %d - %s\n", good ? "ok" : "not ok", tests, name);
}

/* The least whole number whose successor the type does not have. */
static int find_big(void)
{
	return options.dtype == DEVICE_FP16 ? 2048 : 256;
}

/*
 * In units: the first batch of one rank is big, that of the others is 2, and
 * the next two have 1 each: in 16 bits, big + 1 + 1 would stay big.
 */
static int contribute(int rank, int part, size_t i)
{
	if (part > 0)
		return part < 3;
	return (size_t)rank == i % (size_t)collective.size ? find_big() : 2;
}

static double add_up(size_t i)
{
	int sum = 0;

	for (int rank = 0; rank < collective.size; rank++)
		for (int part = 0; part < trainer->chunks; part++)
			sum += contribute(rank, part, i);
	return sum * unit;
}

/* Of each rank and batch in a step of the case with an overflow. */
static double find_part(int number, size_t i)
{
	return (1 + number % 3) * ((double)(i % 5) - 2) * unit;
}

static float choose_value(size_t i)
{
	if (!overflow)
		return (float)(contribute(collective.rank, chunk, i) * unit);
	/* With the loss scale it is 40000, and twice that is above 65504. */
	if (step == SKIPPED && i == 21 && exchange)
		return 40000.0f / 65536;
	if (step == SKIPPED && i == 21 &&
	    collective.rank == collective.size - 1)
		return INFINITY;
	return (float)find_part(step, i);
}

static void fake_gradient(const struct model *model, struct device *device,
			  const void *param, const struct batch *batch,
			  const struct backward *backward, void *grad,
			  double *loss)
{
	size_t count = model->param_count;
	size_t bytes = device_type_bytes(device->type);
	/* As by three operators. */
	const size_t ends[] = { 0, 1, count / 2 + 3, count };
	float values[MOST], had[MOST];

	(void)param, (void)batch;
	half_widen(device->type, grad, had, count);
	for (size_t i = 0; i < count; i++) {
		values[i] = choose_value(i);
		if (backward->loss_scale)
			values[i] *= (float)*backward->loss_scale;
		if (backward->accumulate)
			values[i] += had[i];
	}
	*loss = 1;
	for (int part = 0; part < 3; part++) {
		size_t from = ends[part], to = ends[part + 1];

		half_round(device->type, values + from, (char *)grad +
			   from * bytes, to - from);
		if (backward->progress)
			backward->progress(backward->context, to);
	}
	chunk++;
}

static void take_step(int number, struct share *share)
{
	struct ddp_error error;

	step = number;
	chunk = 0;
	trainer_take_step(trainer, (uint64_t)number);
	if (trainer_read_step(trainer, (uint64_t)number, share, &error) < 0)
		die(&error);
}

static void begin(int argc, char **argv)
{
	struct ddp_error error;
	bool quiet;

	if (options_parse(&options, argc, argv, &error) < 0 ||
	    world_open(&collective, &options, &quiet, &error) < 0 ||
	    options_complete(&options, collective.size, &error) < 0 ||
	    !(trainer = trainer_create(&options, &collective, &no_data,
				       &error)) ||
	    trainer->model->param_count > MOST ||
	    trainer_begin(trainer, &error) < 0) {
		fprintf(stderr, "mixed: %s\n", error.text);
		exit(2);
	}
	trainer->model->gradient = fake_gradient;
}

/* By chance as at the last update, though a step was skipped since then. */
static void round_master(char *rounded)
{
	struct device *device = &trainer->device;

	if (options.rounding == ROUNDING_NEAREST)
		half_round(options.dtype, trainer->master, rounded,
			   trainer->model->param_count);
	else
		device->table->round(device, &(struct op_round){
			trainer->model->param_count, trainer->master, rounded,
			trainer->state, trainer_find_rounding(trainer, 0) });
}

/* All ranks have the same, and operators read it in their type. */
static bool copies_are_right(void)
{
	size_t count = trainer->model->param_count;
	uint64_t mine = trainer_hash_parameters(trainer), all[64];
	float copy[MOST], want[MOST];
	char rounded[MOST * sizeof(float)];

	collective.table->agree(&collective, &mine, all, sizeof(mine));
	/* With --zero 1 no rank has all of the master. */
	if (options.zero)
		return mine == all[0];
	round_master(rounded);
	half_widen(options.dtype, rounded, want, count);
	half_widen(options.dtype, trainer->param, copy, count);
	return mine == all[0] && memcmp(copy, want, count * 4) == 0;
}

/* SGD with lr 1 subtracts the gradient itself. */
static void test_sums(void)
{
	size_t count = trainer->model->param_count;
	double scale = options.dtype == DEVICE_FP16 ? 65536 : 1, squares = 0;
	bool sums = true, updates = true;
	float start[MOST], had[MOST];
	struct share share = { 0 };

	ok(copies_are_right(), "all ranks begin with the same parameters");
	memcpy(start, trainer->master, count * sizeof(*start));
	take_step(1, &share);
	half_widen(options.grad_dtype, trainer->grad, had, count);
	for (size_t i = 0; i < count; i++) {
		float want = (float)(add_up(i) * scale);

		sums &= had[i] == want;
		squares += add_up(i) * add_up(i);
	}
	for (int t = 0; t < trainer->model->tensor_count; t++) {
		const struct tensor *tensor = &trainer->model->tensors[t];

		for (size_t i = tensor->offset;
		     i < tensor->offset + tensor->count; i++)
			updates &= trainer->master[i] ==
				   start[i] - (float)add_up(i);
	}
	ok(sums, "the gradient is the sum over ranks and batches");
	ok(fabs(share.norm - sqrt(squares)) < 1e-12 * share.norm &&
	   !share.skipped && share.loss_scale == scale,
	   "its norm has no loss scale in it");
	ok(updates, "nor has the update");
	ok(copies_are_right(), "and all ranks have it");
}

/* fp64, and only the steps that are not skipped. */
static void update_reference(double *p, double *m, double *v, int number,
			     int updates)
{
	int parts = collective.size * trainer->chunks;

	for (size_t i = 0; i < trainer->model->param_count; i++) {
		double g = find_part(number, i) * parts;

		m[i] = 0.9 * m[i] + 0.1 * g;
		v[i] = 0.95 * v[i] + 0.05 * g * g;
		p[i] -= 0.01 * (m[i] / (1 - pow(0.9, updates))) /
			(sqrt(v[i] / (1 - pow(0.95, updates))) + 1e-8);
	}
}

/* With --zero 1 by what the masters were rounded to. */
static bool is_close(const double *want)
{
	float had[MOST];

	half_widen(options.dtype, trainer->param, had,
		   trainer->model->param_count);
	for (int t = 0; t < trainer->model->tensor_count; t++) {
		const struct tensor *tensor = &trainer->model->tensors[t];

		for (size_t i = tensor->offset;
		     i < tensor->offset + tensor->count; i++) {
			double value = (double)(options.zero ? had[i] :
						trainer->master[i]);
			double most = options.zero ? 0x1p-11 * fabs(want[i]) :
						     0;

			if (!(fabs(value - want[i]) < 1e-6 + most))
				return false;
		}
	}
	return true;
}

static void test_overflow(void)
{
	static double p[MOST], m[MOST], v[MOST];
	size_t count = trainer->model->param_count;
	double scale = options.dtype == DEVICE_FP16 ? 65536 : 1;
	bool dynamic = options.dtype == DEVICE_FP16;
	int updates = 0;
	float start[MOST];

	overflow = true;
	trainer->model->init(trainer->model, options.seed, start);
	for (size_t i = 0; i < count; i++)
		p[i] = (double)start[i];
	for (int number = 1; number <= STEPS; number++) {
		uint64_t before = trainer_hash_parameters(trainer);
		struct share share = { 0 };
		bool skip = number == SKIPPED;
		char name[64];

		take_step(number, &share);
		if (skip && dynamic)
			scale /= 2;
		if (!skip)
			update_reference(p, m, v, number, ++updates);
		snprintf(name, sizeof(name), "step %d is %s on all ranks",
			 number, skip ? "skipped" : "taken");
		ok(share.skipped == skip && share.loss_scale == scale &&
		   isfinite(share.norm) == !skip &&
		   (before == trainer_hash_parameters(trainer)) == skip, name);
	}
	ok(is_close(p), "AdamW has not counted the step that was skipped");
	ok(copies_are_right(), "all ranks have the same parameters");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	exchange = strcmp(argv[1], "exchange") == 0;
	begin(argc - 1, argv + 1);
	if (strcmp(argv[1], "sums") == 0)
		test_sums();
	else
		test_overflow();
	if (collective.rank == 0)
		printf("1..%d\n", tests);
	trainer_destroy(trainer);
	collective.table->close(&collective);
	return failures != 0;
}
