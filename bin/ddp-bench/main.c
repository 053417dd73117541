/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-bench: what the ranks of a job can move, and whether it arrives right;
 * which nodes are slow; how long ranks take to meet. Rank 0 prints.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "config.h"
#include "outliers.h"
#include "preflight.h"
#include "tool/ranks.h"
#include "tool/tool.h"
#include "util/clock.h"

/* ---- the time until ranks can communicate */

enum {
	ID_BYTES = 128,			/* of an ncclUniqueId */
	OPEN = 0, HAND_OUT, CONNECT,	/* what is measured */
	TIMES
};

struct row {
	double seconds[TIMES];		/* below 0: left out */
	uint64_t wrong;
};

struct column {
	const char *title, *unit, *json;
	double scale;
};

static const struct column of_nccl[TIMES] = {
	[OPEN] = { "PMIx_Init", "(ms)", "pmix_init_ms", 1e3 },
	[HAND_OUT] = { "exchange", "(us)", "exchange_us", 1e6 },
	[CONNECT] = { "NCCL init", "(ms)", "nccl_init_ms", 1e3 }
};

static const struct column of_mpi[TIMES] = {
	[OPEN] = { "MPI_Init", "(ms)", "mpi_init_ms", 1e3 },
	[HAND_OUT] = { "MPI_Bcast", "(us)", "mpi_bcast_us", 1e6 }
};

struct bootstrap {
	struct world *world;
	const struct options *options;
	const struct column *columns;	/* [TIMES]; without a title: none */
	struct ddp_error no_comm;
	unsigned char *ids;		/* [size][ID_BYTES] */
	double *times;			/* [iters] */
	struct row row;			/* this rank's */
};

/* An id for rank 0 to hand out: any bytes, but never the same twice. */
static void make_id(int rank, uint64_t seed, unsigned char *id)
{
	for (int i = 0; i < ID_BYTES; i++)
		id[i] = (unsigned char)(seed * 131 + (uint64_t)rank * 17 +
					(uint64_t)i);
}

/* Give all ranks rank 0's id, as programs do: libddp has no broadcast. */
static double hand_out(struct bootstrap *b, uint64_t seed)
{
	const struct backend *backend = b->world->backend;
	unsigned char wanted[ID_BYTES], id[ID_BYTES], *had = id;
	const struct call call = {
		.collective = BROADCAST, .type = UINT8, .count = ID_BYTES,
		.send = id, .receive = id
	};
	double begin, seconds;

	make_id(b->world->rank, seed, id);
	make_id(0, seed, wanted);
	backend->barrier();
	begin = ddp_clock_seconds();
	if (backend == &backend_mpi)
		backend->run(&call);
	else
		backend->gather(id, had = b->ids, ID_BYTES);
	seconds = ddp_clock_seconds() - begin;
	b->row.wrong += memcmp(had, wanted, ID_BYTES) != 0;
	return seconds;
}

static void measure(struct bootstrap *b)
{
	size_t count = (size_t)b->options->iters;
	void *none;

	b->row.seconds[OPEN] = b->world->open_seconds;
	/* The median of all but the first, which makes connections. */
	hand_out(b, 0);
	for (size_t i = 0; i < count; i++)
		b->times[i] = hand_out(b, i + 1);
	b->row.seconds[HAND_OUT] = median(b->times, count);
	b->row.seconds[CONNECT] = -1;
	if (b->columns[CONNECT].title &&
	    world_prepare(b->world, b->options->share_gpu, 0, &none,
			  &b->no_comm) == 0)
		b->row.seconds[CONNECT] = b->world->connect_seconds;
}

static void print_head(const struct bootstrap *b)
{
	const struct world *world = b->world;
	int i;

	printf("# ddp-bench " DDP_VERSION ", bootstrap of %s, %d rank%s on %d "
	       "node%s; %s: %d bytes, median of %" PRIu64 "\n",
	       world->backend->name, world->size, world->size > 1 ? "s" : "",
	       world->node_count, world->node_count > 1 ? "s" : "",
	       b->columns[HAND_OUT].title, ID_BYTES, b->options->iters);
	printf("# %4s  %10s", "rank", "host");
	for (i = 0; i < TIMES && b->columns[i].title; i++)
		printf("  %10s", b->columns[i].title);
	printf("\n# %4s  %10s", "", "");
	for (i = 0; i < TIMES && b->columns[i].title; i++)
		printf("  %10s", b->columns[i].unit);
	putchar('\n');
}

static void print_table(const struct bootstrap *b, const struct row *rows)
{
	const struct world *world = b->world;

	print_head(b);
	for (int rank = 0; rank < world->size; rank++) {
		printf("%6d  %10s", rank, world->members[rank].host);
		for (int i = 0; i < TIMES && b->columns[i].title; i++)
			if (rows[rank].seconds[i] < 0)
				printf("  %10s", "-");
			else
				printf("  %10.2f", rows[rank].seconds[i] *
				       b->columns[i].scale);
		putchar('\n');
	}
	if (b->no_comm.code != DDP_ERROR_NONE)
		printf("# NCCL init is left out: %s\n", b->no_comm.text);
}

static void print_json(const struct bootstrap *b, const struct row *rows)
{
	for (int rank = 0; rank < b->world->size; rank++) {
		printf("{\"rank\":%d,\"host\":", rank);
		tool_print_json(stdout, b->world->members[rank].host);
		for (int i = 0; i < TIMES && b->columns[i].title; i++)
			if (rows[rank].seconds[i] < 0)
				printf(",\"%s\":null", b->columns[i].json);
			else
				printf(",\"%s\":%.3f", b->columns[i].json,
				       rows[rank].seconds[i] *
				       b->columns[i].scale);
		puts("}");
	}
}

static uint64_t sum_wrong(const struct row *rows, int size)
{
	uint64_t sum = 0;

	for (int rank = 0; rank < size; rank++)
		sum += rows[rank].wrong;
	return sum;
}

/*
 * Collective: measure and print, for each rank, the time until it can
 * communicate by world's backend: backend_nccl is libddp. One run measures one
 * of them, because MPI and libddp share PMIx in a process: who comes second
 * finds it begun, and Open MPI 5 then fails. *wrong is set if bytes other than
 * rank 0's were handed out.
 */
static void run_bootstrap(struct world *world, const struct options *options,
			  bool *wrong)
{
	size_t size = (size_t)world->size;
	struct bootstrap b = {
		.world = world, .options = options,
		.columns = world->backend == &backend_mpi ? of_mpi : of_nccl
	};
	struct row *rows = calloc(size, sizeof(*rows));

	b.ids = calloc(size, ID_BYTES);
	b.times = calloc((size_t)options->iters, sizeof(double));
	if (!rows || !b.ids || !b.times)
		world->backend->abort("out of memory");
	measure(&b);
	world->backend->gather(&b.row, rows, sizeof(b.row));
	*wrong = sum_wrong(rows, world->size) > 0;
	if (world->rank == 0)
		(options->json ? print_json : print_table)(&b, rows);
	free(rows);
	free(b.ids);
	free(b.times);
}

/* ---- what the options ask for */

static int work(struct world *world, const struct options *options,
		const struct ddp_error *mine, bool *bad,
		struct ddp_error *error)
{
	char settings[TOOL_SETTINGS_SIZE] = "";

	if (mine->code == DDP_ERROR_NONE)
		tool_options_describe(&bench_options, options, settings,
				      sizeof(settings));
	if (world_agree(world, settings, mine, error) < 0)
		return -1;
	if (options->pairs)
		return pairs_run(world, options, bad, error);
	if (options->bootstrap)
		return (run_bootstrap(world, options, bad), 0);
	return bench_run(world, options, bad, error);
}

/* If the output could not be written, all ranks fail for it. */
static int finish(const struct world *world, struct ddp_error *error)
{
	struct ddp_error mine = { 0 };

	tool_flush(&mine);
	return world_agree(world, "", &mine, error);
}

/*
 * Rank 0 prints, or the first task if the ranks have not met. The others wait
 * for it: a rank that exits with an error could end the step before.
 */
static void print_error(const struct world *world,
			const struct ddp_error *error)
{
	static const struct ddp_error none;

	if (world->backend ? world->rank == 0 : tool_promise_is_first())
		tool_print_error("ddp-bench", error);
	if (world->backend)
		world_agree(world, "", &none, NULL);
}

/* Meet, measure and leave. mine is what is wrong on this rank so far. */
static int run(const struct options *options, struct ddp_error *mine,
	       bool *bad, struct ddp_error *error)
{
	struct world world;
	int rc = world_open(&world, options->backend,
			    mine->code == DDP_ERROR_NONE ? mine : NULL, error);

	/* An error of this rank is reported once all have met. */
	if (rc == 0)
		rc = work(&world, options, mine, bad, error);
	else if (mine->code != DDP_ERROR_NONE)
		*error = *mine;
	if (rc == 0)
		rc = finish(&world, error);
	if (rc < 0)
		print_error(&world, error);
	world_close(&world);
	return rc;
}

int main(int argc, char **argv)
{
	struct options options;
	struct ddp_error mine = { 0 }, error = { 0 };
	bool bad = false;

	tool_start();
	options_parse(&options, argc, argv, &mine);
	if (options.help || options.version)
		return tool_options_answer(&bench_options, options.help);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (options.preflight)
		return preflight_run(&options);
	if (run(&options, &mine, &bad, &error) == 0)
		return bad;
	return error.code == DDP_ERROR_ARGUMENT ||
	       error.code == DDP_ERROR_PEER ? 2 : 1;
}
