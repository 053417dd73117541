/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what collectives took: nccl-tests' table, or JSON lines. */
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

#include "config.h"

double figure_algbw(const struct figure *figure, const struct shape *shape)
{
	return figure->seconds > 0 ?
		(double)shape->size / 1e9 / figure->seconds : 0;
}

double figure_busbw(const struct figure *figure, const struct shape *shape)
{
	return figure_algbw(figure, shape) * shape->bus_factor;
}

static bool reduces(const struct options *options)
{
	return options->collective == ALL_REDUCE ||
		options->collective == REDUCE_SCATTER;
}

static const char *redop_word(const struct options *options)
{
	return reduces(options) ? redop_words[options->redop] : "none";
}

static int root(const struct options *options)
{
	return options->collective == BROADCAST ? (int)options->root : -1;
}

void figures_world(const struct world *world)
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

void figures_begin(const struct world *world, const struct options *options)
{
	static const char *const averages[] = {
		"of rank 0", "average of the ranks", "of the fastest rank",
		"of the slowest rank"
	};
	const uint64_t factor = options->step_factor;

	if (options->json)
		return;
	figures_world(world);
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
	print_number(figure_algbw(figure, shape), 6);
	print_number(figure_busbw(figure, shape), 6);
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
	       figure_algbw(figure, shape), figure_busbw(figure, shape));
	if (checked)
		printf("%" PRIu64 "}", figure->wrong);
	else
		printf("null}");
}

void figures_row(const struct world *world, const struct options *options,
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

void figures_end(const struct options *options, uint64_t wrong, double busbw)
{
	if (options->json)
		return;
	if (options->check > 0)
		printf("# %-20s : %" PRIu64 " %s\n", "Wrong values", wrong,
		       wrong > 0 ? "FAILED" : "OK");
	printf("# %-20s : %g\n", "Avg bus bandwidth", busbw);
}
