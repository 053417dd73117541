/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures collectives, size by size, and checks their results. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "util/clock.h"

enum { STAGE_BYTES = 1 << 20, ALIGNMENT = 4096 };

int bench_open(struct bench *bench, struct world *world,
	       const struct options *options, size_t send, size_t receive,
	       struct ddp_error *error)
{
	size_t first = (send / ALIGNMENT + 1) * ALIGNMENT;
	struct ddp_error mine = { 0 };
	void *memory;

	*bench = (struct bench){ .world = world, .options = options };
	bench->stage = malloc(STAGE_BYTES);
	if (!bench->stage)
		ddp_error_set(&mine, DDP_ERROR_SYSTEM, "out of memory");
	if (world_agree(world, "", &mine, error) < 0 ||
	    world_prepare(world, options->share_gpu, first + receive, &memory,
			  error) < 0) {
		free(bench->stage);
		return -1;
	}
	bench->memory = bench->send = memory;
	bench->receive = bench->memory + first;
	return 0;
}

void bench_close(struct bench *bench)
{
	bench->world->backend->release(bench->memory);
	free(bench->stage);
}

void bench_fill(struct bench *bench, unsigned char *buffer, size_t count)
{
	size_t width = bench->pattern.width, most = STAGE_BYTES / width;

	for (size_t at = 0; at < count; at += most) {
		size_t n = count - at < most ? count - at : most;

		pattern_write(&bench->pattern, at, n, bench->stage);
		bench->world->backend->put(buffer + at * width, bench->stage,
					   n * width);
	}
}

void bench_clear(struct bench *bench, unsigned char *buffer, size_t size)
{
	memset(bench->stage, 0, size < STAGE_BYTES ? size : STAGE_BYTES);
	for (size_t at = 0; at < size; at += STAGE_BYTES)
		bench->world->backend->put(buffer + at, bench->stage,
					   size - at < STAGE_BYTES ?
					   size - at : STAGE_BYTES);
}

uint64_t bench_wrong(struct bench *bench, const unsigned char *buffer,
		     size_t at, size_t count)
{
	size_t width = bench->pattern.width, most = STAGE_BYTES / width;
	uint64_t wrong = 0;

	for (size_t done = 0; done < count; done += most) {
		size_t n = count - done < most ? count - done : most;

		bench->world->backend->get(bench->stage, buffer + done * width,
					   n * width);
		wrong += pattern_wrong(&bench->pattern, at + done, n,
				       bench->stage);
	}
	return wrong;
}

/* Set the pattern to what the ranks from first to last make together; if they
 * are one rank, to what it sends. */
static void set_pattern(struct bench *bench, int first, int last)
{
	const struct options *options = bench->options;
	bool folds = options->collective == ALL_REDUCE ||
		options->collective == REDUCE_SCATTER;

	pattern_make(&bench->pattern, options->type,
		     folds ? options->redop : MAX, first, last,
		     bench->world->size, bench->seed);
}

static void set_values(struct bench *bench, const struct shape *shape,
		       bool in_place)
{
	enum collective collective = bench->options->collective;
	size_t rank = (size_t)bench->world->rank;
	size_t width = type_width(bench->options->type);
	unsigned char *to = in_place ? bench->receive : bench->send;

	bench->seed++;
	set_pattern(bench, (int)rank, (int)rank);
	bench_clear(bench, bench->receive,
		    (in_place ? shape->size : shape->receive * width));
	if (collective == ALL_GATHER && in_place)
		to += rank * shape->count * width;
	if (collective != BROADCAST || rank == bench->options->root)
		bench_fill(bench, to, shape->send);
	else
		bench_clear(bench, to, shape->send * width);
}

static uint64_t count_wrong(struct bench *bench, const struct shape *shape,
			    bool in_place)
{
	const struct world *world = bench->world;
	size_t at = (size_t)world->rank * shape->count;
	size_t step = shape->count * bench->pattern.width;
	const unsigned char *from = bench->receive;
	uint64_t wrong = 0;

	switch (bench->options->collective) {
	case ALL_GATHER:
		for (int rank = 0; rank < world->size; rank++, from += step) {
			set_pattern(bench, rank, rank);
			wrong += bench_wrong(bench, from, 0, shape->count);
		}
		return wrong;
	case BROADCAST:
		set_pattern(bench, (int)bench->options->root,
			    (int)bench->options->root);
		return bench_wrong(bench, from, 0, shape->count);
	case REDUCE_SCATTER:
		if (in_place && !world->backend->scatters_to_start)
			from += (size_t)world->rank * step;
		set_pattern(bench, 0, world->size - 1);
		return bench_wrong(bench, from, at, shape->count);
	case ALL_REDUCE:
		break;
	}
	set_pattern(bench, 0, world->size - 1);
	return bench_wrong(bench, from, 0, shape->count);
}

static struct call make_call(const struct bench *bench,
			     const struct shape *shape, bool in_place)
{
	const struct options *options = bench->options;

	return (struct call){
		.collective = options->collective, .type = options->type,
		.redop = options->redop, .root = (int)options->root,
		.count = shape->count,
		.send = in_place ? bench->receive : bench->send,
		.receive = bench->receive
	};
}

static double time_calls(struct bench *bench, const struct call *call)
{
	const struct backend *backend = bench->world->backend;
	const struct options *options = bench->options;
	double begin;

	for (uint64_t i = 0; i < options->warmup_iters; i++)
		backend->run(call);
	backend->wait();
	backend->barrier();
	begin = ddp_clock_seconds();
	for (uint64_t i = 0; i < options->iters; i++)
		backend->run(call);
	backend->wait();
	return (ddp_clock_seconds() - begin) / (double)options->iters;
}

/* A rank's result. */
struct outcome {
	double seconds;
	uint64_t wrong;
};

static struct figure combine(const struct outcome *all, int size,
			     enum average average)
{
	struct figure figure = { 0 };
	double sum = 0, least = all[0].seconds, greatest = all[0].seconds;

	for (int rank = 0; rank < size; rank++) {
		double seconds = all[rank].seconds;

		sum += seconds;
		least = seconds < least ? seconds : least;
		greatest = seconds > greatest ? seconds : greatest;
		if (all[rank].wrong > 0 && figure.wrong_ranks++ == 0)
			figure.first_wrong = rank;
		figure.wrong += all[rank].wrong;
	}
	figure.seconds = average == AVERAGE_RANK0 ? all[0].seconds :
		average == AVERAGE_MIN ? least :
		average == AVERAGE_MAX ? greatest : sum / size;
	return figure;
}

/* Time one shape, then check it until something is wrong. */
static struct figure measure(struct bench *bench, const struct shape *shape,
			     bool in_place, struct outcome *all)
{
	const struct world *world = bench->world;
	struct call call = make_call(bench, shape, in_place);
	struct outcome mine = { 0 };
	struct figure figure;
	uint64_t checked = 0;

	set_values(bench, shape, in_place);
	mine.seconds = time_calls(bench, &call);
	do {
		if (bench->options->check > 0) {
			set_values(bench, shape, in_place);
			world->backend->run(&call);
			world->backend->wait();
			mine.wrong = count_wrong(bench, shape, in_place);
		}
		world->backend->gather(&mine, all, sizeof(mine));
		figure = combine(all, world->size, bench->options->average);
	} while (++checked < bench->options->check && figure.wrong == 0);
	return figure;
}

/* Measure each size of the options, out of place and in place. */
static void run_sizes(struct bench *bench, struct outcome *all, bool *wrong)
{
	const struct options *options = bench->options;
	bool prints = bench->world->rank == 0;
	uint64_t size = options->min_bytes, wrong_sum = 0;
	double busbw_sum = 0;
	int count = 0;

	if (prints)
		figures_begin(bench->world, options);
	while (size <= options->max_bytes) {
		struct shape shape = shape_make(options->collective,
						options->type, size,
						bench->world->size);
		struct figure figures[2];

		for (int in_place = 0; in_place < 2; in_place++) {
			figures[in_place] = measure(bench, &shape, in_place,
						    all);
			wrong_sum += figures[in_place].wrong;
			busbw_sum += figure_busbw(&figures[in_place], &shape);
			count++;
		}
		if (prints)
			figures_row(bench->world, options, &shape, figures);
		if (options->step_factor > 1)
			size *= options->step_factor;
		else
			size += options->step_bytes;
	}
	if (prints)
		figures_end(options, wrong_sum, busbw_sum / count);
	*wrong = wrong_sum > 0;
}

/* Refuse what this world cannot do; every rank finds the same. */
static int check_options(const struct world *world,
			 const struct options *options,
			 const struct shape *largest, struct ddp_error *error)
{
	if (options->root >= (uint64_t)world->size)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--root %d is "
				     "not one of the %d ranks, 0 to %d",
				     (int)options->root, world->size,
				     world->size - 1);
	if (largest->count > world->backend->count_max)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--maxbytes "
				     "makes %zu elements of one call, and "
				     "backend %s takes %zu; choose a smaller "
				     "one or a larger --datatype",
				     largest->count, world->backend->name,
				     world->backend->count_max);
	return 0;
}

int bench_run(struct world *world, const struct options *options, bool *wrong,
	      struct ddp_error *error)
{
	struct shape largest = shape_make(options->collective, options->type,
					  options->max_bytes, world->size);
	size_t width = type_width(options->type);
	struct outcome *all;
	struct bench bench;

	if (check_options(world, options, &largest, error) < 0 ||
	    bench_open(&bench, world, options, largest.send * width,
		       largest.size, error) < 0)
		return -1;
	all = calloc((size_t)world->size, sizeof(*all));
	if (!all)
		world->backend->abort("out of memory for the ranks' times");
	run_sizes(&bench, all, wrong);
	free(all);
	bench_close(&bench);
	return 0;
}
