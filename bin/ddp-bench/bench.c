/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures collectives, size by size, checks their results and prints them:
 * nccl-tests' table, or JSON lines.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "util/clock.h"

enum { STAGE_BYTES = 1 << 20, ALIGNMENT = 4096 };

/* ---- memory of the device, filled and read through some of the host's */

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

double bench_exchange(struct bench *bench, int peer, size_t size)
{
	const struct backend *backend = bench->world->backend;
	double begin = ddp_clock_seconds();

	backend->exchange(peer, bench->send, bench->receive, size);
	backend->wait();
	return ddp_clock_seconds() - begin;
}

uint64_t bench_check_exchange(struct bench *bench, int peer, size_t size)
{
	int rank = bench->world->rank, ranks = bench->world->size;

	pattern_make(&bench->pattern, UINT8, MAX, rank, rank, ranks, 1);
	bench_fill(bench, bench->send, size);
	bench_clear(bench, bench->receive, size);
	bench_exchange(bench, peer, size);
	pattern_make(&bench->pattern, UINT8, MAX, peer, peer, ranks, 1);
	return bench_wrong(bench, bench->receive, 0, size);
}

/* ---- what collectives took */

/* The figures of one size, in place or out of place. */
struct figure {
	double seconds;		/* of one call */
	uint64_t wrong;		/* elements, of all ranks */
	int wrong_ranks, first_wrong;
};

static double find_algbw(const struct figure *figure,
			 const struct shape *shape)
{
	return figure->seconds > 0 ?
		(double)shape->size / 1e9 / figure->seconds : 0;
}

static double find_busbw(const struct figure *figure,
			 const struct shape *shape)
{
	return find_algbw(figure, shape) * shape->bus_factor;
}

static const char *redop_word(const struct options *options)
{
	return options->collective == ALL_REDUCE ||
		options->collective == REDUCE_SCATTER ?
		redop_words[options->redop] : "none";
}

static int root(const struct options *options)
{
	return options->collective == BROADCAST ? (int)options->root : -1;
}

void bench_print_world(const struct world *world)
{
	char library[128];

	world->backend->describe(library, sizeof(library));
	printf("# ddp-bench " DDP_VERSION ", backend %s (%s), %d rank%s on %d "
	       "node%s\n", world->backend->name, library, world->size,
	       world->size > 1 ? "s" : "", world->node_count,
	       world->node_count > 1 ? "s" : "");
	for (int rank = 0; rank < world->size; rank++)
		printf("#  Rank %2d on %10s device %s\n", rank,
		       world->members[rank].host,
		       world->members[rank].device);
}

/* Print the head: who measures what. */
static void print_head(const struct world *world, const struct options *options)
{
	static const char *const averages[] = {
		"of rank 0", "average of the ranks", "of the fastest rank",
		"of the slowest rank"
	};
	const uint64_t factor = options->step_factor;

	if (options->json)
		return;
	bench_print_world(world);
	printf("# %s, minBytes %" PRIu64 " maxBytes %" PRIu64 " step: %" PRIu64
	       "(%s) warmup iters: %" PRIu64 " iters: %" PRIu64
	       " validation: %" PRIu64 ", time: %s\n#\n",
	       collective_words[options->collective], options->min_bytes,
	       options->max_bytes, factor > 1 ? factor : options->step_bytes,
	       factor > 1 ? "factor" : "bytes", options->warmup_iters,
	       options->iters, options->check, averages[options->average]);
	printf("# %10s  %12s  %8s  %6s  %6s           out-of-place         "
	       "              in-place          \n", "", "", "", "", "");
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  "
	       "%6s  %6s\n", "size", "count", "type", "redop", "root", "time",
	       "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  "
	       "%6s  %6s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
	       "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

/* Print up to 2 decimals, as many as fit into width. */
static void print_number(double value, int width)
{
	char text[32];
	int decimals = 2;

	while (snprintf(text, sizeof(text), "%.*f", decimals, value) > width &&
	       decimals > 0)
		decimals--;
	printf("  %*s", width, text);
}

static void print_figure(const struct figure *figure,
			 const struct shape *shape, bool checked)
{
	print_number(figure->seconds * 1e6, 7);
	print_number(find_algbw(figure, shape), 6);
	print_number(find_busbw(figure, shape), 6);
	if (checked)
		printf("  %6" PRIu64, figure->wrong);
	else
		printf("     N/A");
}

static void print_wrong(const struct world *world, const char *where,
			const struct figure *figure)
{
	int rank = figure->first_wrong;

	if (figure->wrong == 0)
		return;
	printf("# wrong elements %s: %" PRIu64 " on %d rank%s, the first is "
	       "rank %d on %s\n", where, figure->wrong, figure->wrong_ranks,
	       figure->wrong_ranks > 1 ? "s" : "", rank,
	       world->members[rank].host);
}

static void print_json(const char *name, const struct figure *figure,
		       const struct shape *shape, bool checked)
{
	printf(",\"%s\":{\"time\":%.6f,\"alg_bw\":%.6f,\"bus_bw\":%.6f,"
	       "\"nwrong\":", name, figure->seconds * 1e6,
	       find_algbw(figure, shape), find_busbw(figure, shape));
	if (checked)
		printf("%" PRIu64 "}", figure->wrong);
	else
		printf("null}");
}

/* Print a row; figures are those out of place and in place. */
static void print_row(const struct world *world, const struct options *options,
		      const struct shape *shape, const struct figure figures[2])
{
	bool checked = options->check > 0;

	if (options->json) {
		printf("{\"collective\":\"%s\",\"backend\":\"%s\",\"ranks\":%d,"
		       "\"nodes\":%d,\"size\":%zu,\"count\":%zu,\"type\":\"%s\""
		       ",\"redop\":\"%s\",\"root\":%d",
		       collective_words[options->collective],
		       world->backend->name, world->size, world->node_count,
		       shape->size, shape->count, type_words[options->type],
		       redop_word(options), root(options));
		print_json("out_of_place", &figures[0], shape, checked);
		print_json("in_place", &figures[1], shape, checked);
		puts("}");
		return;
	}
	printf("%12zu  %12zu  %8s  %6s  %6d", shape->size, shape->count,
	       type_words[options->type], redop_word(options), root(options));
	print_figure(&figures[0], shape, checked);
	print_figure(&figures[1], shape, checked);
	putchar('\n');
	print_wrong(world, "out of place", &figures[0]);
	print_wrong(world, "in place", &figures[1]);
}

/* Print the end; wrong is the sum over all rows, busbw the average. */
static void print_end(const struct options *options, uint64_t wrong,
		      double busbw)
{
	if (options->json)
		return;
	if (options->check > 0)
		printf("# %-20s : %" PRIu64 " %s\n", "Wrong values", wrong,
		       wrong > 0 ? "FAILED" : "OK");
	printf("# %-20s : %g\n", "Avg bus bandwidth", busbw);
}

/* ---- measuring */

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
		print_head(bench->world, options);
	while (size <= options->max_bytes) {
		struct shape shape = shape_make(options->collective,
						options->type, size,
						bench->world->size);
		struct figure figures[2];

		for (int in_place = 0; in_place < 2; in_place++) {
			figures[in_place] = measure(bench, &shape, in_place,
						    all);
			wrong_sum += figures[in_place].wrong;
			busbw_sum += find_busbw(&figures[in_place], &shape);
			count++;
		}
		if (prints)
			print_row(bench->world, options, &shape, figures);
		if (options->step_factor > 1)
			size *= options->step_factor;
		else
			size += options->step_bytes;
	}
	if (prints)
		print_end(options, wrong_sum, busbw_sum / count);
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
