/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the ranks that train together, and calls the roll. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "config.h"
#include "place/machine.h"
#include "run/world.h"
#include "tool/ranks.h"
#include "util/error.h"
#include "util/text.h"

enum { COLUMNS = 6, CELL = WORLD_CELL };

static const char titles[COLUMNS][CELL] = {
	"rank", "host", "node", "local", "gpus", "cpus"
};

/* A rank's row of the table. */
struct row {
	char cells[COLUMNS][CELL];
};

/* How many ranks there are; -1: the environment does not say. */
static int count_ranks(const struct tool_promise *promise)
{
	const char *others = getenv("OMPI_COMM_WORLD_SIZE");

	if (promise->size > 0)
		return promise->size;
	return others ? (int)strtol(others, NULL, 10) : promise->tasks;
}

/* One rank needs no NCCL. Where MPI has started it, it joins that. */
static enum backend settle_backend(const struct options *options,
				   const struct tool_promise *promise)
{
	int size = count_ranks(promise);

	if (options->backend != BACKEND_AUTO)
		return options->backend;
	if (options->device == COMPUTE_CUDA)
		return size > 1 || (size < 0 && promise->mpi) ? BACKEND_NCCL :
								BACKEND_SELF;
	return size > 1 || promise->mpi ? BACKEND_MPI : BACKEND_SELF;
}

static const struct collective_table *
find_self(const struct options *options, const struct tool_promise *promise,
	  struct ddp_error *error)
{
	int size = count_ranks(promise);

	if (size <= 1)
		return &collective_self;
	ddp_error_set(error, DDP_ERROR_SYSTEM, "there are %d ranks but "
		      "--backend self trains one process alone; use --backend "
		      "%s", size, options->device == COMPUTE_CUDA ? "nccl" :
								    "mpi");
	return NULL;
}

/* libddp says what is wrong with a launcher. */
static const struct collective_table *find_nccl(struct ddp_error *error)
{
#ifdef HAVE_PMIX
	(void)error;
	return &collective_nccl;
#else
	ddp_error_set(error, DDP_ERROR_SYSTEM, "this ddp-train was built "
		      "without PMIx and has no backend nccl, by which the "
		      "ranks of several GPUs meet; build it with ./configure "
		      "--with-pmix, or use --device cpu");
	return NULL;
#endif
}

static const struct collective_table *
choose_table(const struct options *options, enum backend backend,
	     const struct tool_promise *promise, struct ddp_error *error)
{
	if (backend == BACKEND_SELF)
		return find_self(options, promise, error);
	if (backend == BACKEND_NCCL)
		return find_nccl(error);
#ifdef HAVE_MPI
	if (tool_promise_check_mpi(promise, error) == 0)
		return &collective_mpi;
#else
	ddp_error_set(error, DDP_ERROR_SYSTEM, "this ddp-train was built "
		      "without MPI and cannot meet other ranks; build it with "
		      "./configure --with-mpi, or train one process alone by "
		      "--backend self");
#endif
	return NULL;
}

int world_check_abi(const char *table, uint32_t known, uint32_t built,
		    struct ddp_error *error)
{
	if (built == known)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the part '%s' was built "
			     "for version %" PRIu32 " of ddp-train's "
			     "interface, not for %" PRIu32 "; build all of "
			     "ddp-train again", table, built, known);
}

/* Compares the ranks' backends before a rank waits where others never come. */
static int compare_ways(const struct collective *collective,
			enum backend backend, struct ddp_error *error)
{
#ifdef HAVE_PMIX
	if (backend != BACKEND_SELF)
		return meet_compare(collective, backend, error);
#endif
	(void)collective;
	(void)backend;
	(void)error;
	return 0;
}

int world_open(struct collective *collective, const struct options *options,
	       bool *quiet, struct ddp_error *error)
{
	struct tool_promise promise;
	bool bad = tool_promise_read(&promise, error) < 0;
	enum backend backend = settle_backend(options, &promise);

	*collective = (struct collective){
		.size = 1, .nodes = 1, .most = 1,
		.timeout = (double)options->timeout,
		.share_gpu = options->share_gpu
	};
	if (compare_ways(collective, backend, error) == 0)
		collective->table = choose_table(options, backend, &promise,
						 error);
	if (collective->table &&
	    (world_check_abi(collective->table->name, COLLECTIVE_ABI,
			     collective->table->abi, error) < 0 ||
	     collective->table->open(collective, error) < 0))
		collective->table = NULL;
	/* All tasks that failed to meet notice: only the first prints it. */
	*quiet = (promise.size > 1 || !collective->table) &&
		 collective->size == 1 && !tool_promise_is_first();
	if (bad || !collective->table)
		return -1;
	return tool_promise_compare(&promise, collective->table->name,
				    collective->rank, collective->size, error);
}

static void fill_text(char *cell, const char *text)
{
	if (snprintf(cell, CELL, "%s", text) >= CELL)
		strcpy(cell + CELL - 4, "...");
	ddp_text_quote(cell);
}

static void fill_variable(char *cell, const char *name)
{
	const char *text = getenv(name);

	fill_text(cell, !text ? "-" : !*text ? "none" : text);
}

/* The CPUs that this process may run on, as 0-3,8. */
static void fill_cpus(char *cell)
{
	struct ddp_cpuset set = { 0 };
	char text[DDP_CPUSET_TEXT_SIZE] = "-";

	if (sched_getaffinity(0, sizeof(set), (cpu_set_t *)&set) == 0)
		ddp_cpuset_format(&set, text, sizeof(text));
	fill_text(cell, text);
}

static void fill_row(struct row *row, int rank)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(row->cells[0], CELL, "%d", rank);
	fill_text(row->cells[1], host);
	fill_variable(row->cells[2], "NODE_RANK");
	fill_variable(row->cells[3], "LOCAL_RANK");
	fill_variable(row->cells[4], "CUDA_VISIBLE_DEVICES");
	fill_cpus(row->cells[5]);
}

static void print_row(const char cells[COLUMNS][CELL], const int *widths)
{
	printf("%*s", widths[0], cells[0]);
	for (int i = 1; i < COLUMNS; i++)
		printf("  %-*s", i < COLUMNS - 1 ? widths[i] : 0, cells[i]);
	putchar('\n');
}

static void print_table(const struct row *rows, int size)
{
	int widths[COLUMNS];

	for (int i = 0; i < COLUMNS; i++) {
		widths[i] = (int)strlen(titles[i]);
		for (int rank = 0; rank < size; rank++) {
			int width = (int)strlen(rows[rank].cells[i]);

			if (width > widths[i])
				widths[i] = width;
		}
	}
	print_row(titles, widths);
	for (int rank = 0; rank < size; rank++)
		print_row(rows[rank].cells, widths);
}

static void exchange(void *context, const void *mine, void *all, size_t size)
{
	struct collective *collective = context;

	collective->table->agree(collective, mine, all, size);
}

static void end_ranks(void *context, const char *sentence)
{
	struct collective *collective = context;

	collective->table->abort(collective, sentence);
}

static int agree(struct collective *collective, const char *settings,
		 const struct ddp_error *mine, struct ddp_error *error)
{
	const struct tool_ranks ranks = {
		.rank = collective->rank, .size = collective->size,
		.exchange = exchange, .abort = end_ranks, .context = collective
	};

	return tool_agree(&ranks, settings, mine, error);
}

/* Every rank's cells, the caller's to free. */
static struct row *gather(struct collective *collective)
{
	struct row own = { 0 };
	struct row *all = calloc((size_t)collective->size, sizeof(*all));

	/* The others wait for this rank, so end them. */
	if (!all)
		collective->table->abort(collective, "no memory for the table "
					 "of ranks");
	fill_row(&own, collective->rank);
	collective->table->agree(collective, &own, all, sizeof(own));
	return all;
}

int world_call_roll(struct collective *collective, const char *settings,
		    const struct ddp_error *mine, char (*hosts)[WORLD_CELL],
		    struct ddp_error *error)
{
	struct row *all = gather(collective);
	int result = agree(collective, settings, mine, error);

	if (result == 0 && collective->rank == 0)
		print_table(all, collective->size);
	for (int rank = 0; rank < collective->size; rank++)
		strcpy(hosts[rank], all[rank].cells[1]);
	free(all);
	return result;
}

int world_share_errors(struct collective *collective,
		       const struct ddp_error *mine, struct ddp_error *error)
{
	return agree(collective, "", mine, error);
}
