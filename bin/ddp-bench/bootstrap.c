/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures how long ranks take until they can communicate. */
#include "bootstrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "layout/clock.h"
#include "outliers.h"
#include "tool/tool.h"

enum { ID_BYTES = 128 };		/* of an ncclUniqueId */

struct row {
	double job, exchange, connect;	/* seconds; below 0: left out */
	double mpi, broadcast;
	uint64_t wrong;
};

static bool mpi_is_open;

struct bootstrap {
	struct world *world;
	const struct options *options;
	struct ddp_error no_mpi, no_comm;
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

static void meet(const struct bootstrap *b)
{
	if (mpi_is_open)
		backend_mpi.barrier();
	else
		b->world->backend->barrier();
}

static double exchange(struct bootstrap *b, uint64_t seed)
{
	unsigned char id[ID_BYTES], wanted[ID_BYTES];
	double begin, seconds;

	make_id(b->world->rank, seed, id);
	make_id(0, seed, wanted);
	meet(b);
	begin = ddp_clock_seconds();
	b->world->backend->gather(id, b->ids, ID_BYTES);
	seconds = ddp_clock_seconds() - begin;
	b->row.wrong += memcmp(b->ids, wanted, ID_BYTES) != 0;
	return seconds;
}

static double broadcast(struct bootstrap *b, uint64_t seed)
{
	unsigned char id[ID_BYTES], wanted[ID_BYTES];
	const struct call call = {
		.collective = BROADCAST, .type = UINT8, .count = ID_BYTES,
		.send = id, .receive = id
	};
	double begin, seconds;

	make_id(b->world->rank, seed, id);
	make_id(0, seed, wanted);
	meet(b);
	begin = ddp_clock_seconds();
	backend_mpi.run(&call);
	seconds = ddp_clock_seconds() - begin;
	b->row.wrong += memcmp(id, wanted, ID_BYTES) != 0;
	return seconds;
}

/* The median of all calls but the first, which makes connections. */
static double repeat(struct bootstrap *b,
		     double (*once)(struct bootstrap *, uint64_t seed))
{
	size_t count = (size_t)b->options->iters;

	once(b, 0);
	for (size_t i = 0; i < count; i++)
		b->times[i] = once(b, i + 1);
	return median(b->times, count);
}

/* Begin MPI if it is there; fail if its world is not libddp's. */
static int open_mpi(struct bootstrap *b, struct ddp_error *error)
{
	const struct world *world = b->world;
	struct ddp_error mine = { 0 };
	double begin = ddp_clock_seconds();
	int rank, size;

	mpi_is_open = backend_mpi.open(&rank, &size, &b->no_mpi) == 0;
	b->row.mpi = mpi_is_open ? ddp_clock_seconds() - begin : -1;
	if (mpi_is_open && (rank != world->rank || size != world->size))
		ddp_error_set(&mine, DDP_ERROR_SYSTEM, "this is rank %d of %d "
			      "for PMIx but rank %d of %d for MPI, which needs "
			      "another launcher; build ddp-bench with an MPI "
			      "that uses PMIx", world->rank, world->size, rank,
			      size);
	return world_agree(world, "", &mine, error);
}

static void measure(struct bootstrap *b)
{
	void *none;

	b->row.job = b->world->open_seconds;
	b->row.exchange = repeat(b, exchange);
	b->row.broadcast = mpi_is_open ? repeat(b, broadcast) : -1;
	b->row.connect = -1;
	if (world_prepare(b->world, b->options->share_gpu, 0, &none,
			  &b->no_comm) == 0)
		b->row.connect = b->world->connect_seconds;
}

static void print_cell(double value)
{
	if (value < 0)
		printf("  %10s", "-");
	else
		printf("  %10.2f", value);
}

static void print_table(const struct bootstrap *b, const struct row *rows)
{
	const struct world *world = b->world;

	printf("# ddp-bench " DDP_VERSION ", bootstrap, %d rank%s on %d node%s"
	       "; exchange, bcast: %d bytes, median of %" PRIu64 "\n",
	       world->size, world->size > 1 ? "s" : "", world->node_count,
	       world->node_count > 1 ? "s" : "", ID_BYTES, b->options->iters);
	printf("# %4s  %10s  %10s  %10s  %10s  %10s  %10s\n", "rank", "host",
	       "PMIx_Init", "exchange", "NCCL init", "MPI_Init", "MPI_Bcast");
	printf("# %4s  %10s  %10s  %10s  %10s  %10s  %10s\n", "", "", "(ms)",
	       "(us)", "(ms)", "(ms)", "(us)");
	for (int rank = 0; rank < world->size; rank++) {
		const struct row *row = &rows[rank];

		printf("%6d  %10s", rank, world->members[rank].host);
		print_cell(row->job * 1e3);
		print_cell(row->exchange * 1e6);
		print_cell(row->connect * 1e3);
		print_cell(row->mpi * 1e3);
		print_cell(row->broadcast * 1e6);
		putchar('\n');
	}
	if (b->row.connect < 0)
		printf("# NCCL init is left out: %s\n", b->no_comm.text);
	if (!mpi_is_open)
		printf("# MPI is left out: %s\n", b->no_mpi.text);
}

static void print_value(const char *name, double value)
{
	if (value < 0)
		printf(",\"%s\":null", name);
	else
		printf(",\"%s\":%.3f", name, value);
}

static void print_json(const struct bootstrap *b, const struct row *rows)
{
	for (int rank = 0; rank < b->world->size; rank++) {
		const struct row *row = &rows[rank];

		printf("{\"rank\":%d,\"host\":", rank);
		tool_print_json(stdout, b->world->members[rank].host);
		print_value("pmix_init_ms", row->job * 1e3);
		print_value("exchange_us", row->exchange * 1e6);
		print_value("nccl_init_ms", row->connect * 1e3);
		print_value("mpi_init_ms", row->mpi * 1e3);
		print_value("mpi_bcast_us", row->broadcast * 1e6);
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

void bootstrap_end(void)
{
	if (mpi_is_open)
		backend_mpi.close();
	mpi_is_open = false;
}

int bootstrap_run(struct world *world, const struct options *options,
		  bool *wrong, struct ddp_error *error)
{
	size_t size = (size_t)world->size;
	struct bootstrap b = { .world = world, .options = options };
	struct row *rows = calloc(size, sizeof(*rows));
	int rc;

	b.ids = calloc(size, ID_BYTES);
	b.times = calloc((size_t)options->iters, sizeof(double));
	if (!rows || !b.ids || !b.times)
		world->backend->abort("out of memory");
	rc = open_mpi(&b, error);
	if (rc == 0) {
		measure(&b);
		world->backend->gather(&b.row, rows, sizeof(b.row));
		*wrong = sum_wrong(rows, world->size) > 0;
		if (world->rank == 0)
			(options->json ? print_json : print_table)(&b, rows);
	}
	free(rows);
	free(b.ids);
	free(b.times);
	return rc;
}
