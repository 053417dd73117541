/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main header of ddp-bench. main.c meets the ranks and chooses one of three
 * measurements: collectives (bench.c), pairs of nodes (pairs.c) or the time
 * until ranks can communicate (main.c itself). What moves the data is a table
 * of functions (backend.h, of which mpi.c and nccl.c are two); pattern.c makes
 * data whose result is known. preflight.h begins what tells whether nodes are
 * fit. Start with main.c, then backend.h.
 */
#ifndef DDP_BENCH_BENCH_H
#define DDP_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "pattern.h"
#include "tool/option.h"

/* ---- the command line */

/* The choices of the ranks' mean time to show, as nccl-tests counts them. */
enum average { AVERAGE_RANK0, AVERAGE_MEAN, AVERAGE_MIN, AVERAGE_MAX };

/* The settings of the command line, with defaults for the rest. */
struct options {
	bool pairs, bootstrap, preflight;	/* what to do; none: measure a
						   collective */
	unsigned backend_index;
	const struct backend *backend;	/* never NULL */
	bool backend_given;
	enum collective collective;
	enum type type;
	enum redop redop;
	enum average average;
	uint64_t min_bytes, max_bytes, step_bytes, step_factor;
	uint64_t iters, warmup_iters, check, root;
	uint64_t limit;			/* seconds; 0: the default */
	uint64_t ngpus, nthreads;	/* of a rank, as nccl-tests has them */
	bool share_gpu, json;
	enum tool_help help;
	bool version;
};

/*
 * Returns 0, or -1 with error naming the option, its value and what fits. The
 * options are then the defaults, but with the backend that the options name,
 * for the ranks to meet.
 */
int options_parse(struct options *options, int argc, char **argv,
		  struct ddp_error *error);

extern const struct tool_options bench_options;

/* ---- the ranks that have met, and how they act together */

struct member {
	char host[64];
	char device[48];	/* after world_prepare */
	int node;		/* nodes are counted by their lowest rank */
	int local_rank;
};

/* The ranks that have met. */
struct world {
	const struct backend *backend;	/* NULL: they have not met */
	int rank, size;
	int node_count;
	struct member *members;		/* one a rank */
	double open_seconds;		/* of backend->open */
	double connect_seconds;
};

/*
 * Meet the other ranks. Returns 0, or -1 with error set. If this is not the
 * world that the environment promises, mine (NULL: not wanted) is set, and the
 * other ranks have still to be told.
 */
int world_open(struct world *world, const struct backend *backend,
	       struct ddp_error *mine, struct ddp_error *error);

/* Closes the backend as well. */
void world_close(struct world *world);

/* Set a rank's node by its host, once all ranks before it have theirs. */
void world_find_node(struct world *world, int rank);

/* The host of a node; NULL: it is none. */
static inline const char *world_host(const struct world *world, int node)
{
	for (int rank = 0; rank < world->size; rank++)
		if (world->members[rank].node == node)
			return world->members[rank].host;
	return NULL;
}

/* The rank on another node with this rank's local rank; -1: none. */
int world_find_peer(const struct world *world, int node);

/*
 * Returns how many ranks of each of two nodes have a partner on the other one.
 */
int world_pair_width(const struct world *world, int a, int b);

/*
 * Collective: as tool_agree(), fail on every rank if mine is an error on any of
 * them or the settings differ.
 */
int world_agree(const struct world *world, const char *settings,
		const struct ddp_error *mine, struct ddp_error *error);

/*
 * Collective: choose devices, reserve size bytes (0: none) at *buffer, and
 * connect the ranks; fails on all ranks or on none.
 */
int world_prepare(struct world *world, bool share, size_t size, void **buffer,
		  struct ddp_error *error);

/* ---- measurements */

/* The device's memory, which is filled and read through some of the host's. */
struct bench {
	struct world *world;
	const struct options *options;
	unsigned char *memory;		/* of the device; begins with send */
	unsigned char *send, *receive;
	unsigned char *stage;		/* of the host */
	struct pattern pattern;
	uint64_t seed;			/* of the values; new for each call */
};

/*
 * Collective: prepare the world, with a send and a receive buffer of so many
 * bytes. Fails on all ranks or on none; call bench_close only after success.
 */
int bench_open(struct bench *bench, struct world *world,
	       const struct options *options, size_t send, size_t receive,
	       struct ddp_error *error);
void bench_close(struct bench *bench);

/* Write elements of bench->pattern, or zeros, to a buffer of the device. */
void bench_fill(struct bench *bench, unsigned char *buffer, size_t count);
void bench_clear(struct bench *bench, unsigned char *buffer, size_t size);

/*
 * Returns how many elements differ from bench->pattern's, from element at on.
 */
uint64_t bench_wrong(struct bench *bench, const unsigned char *buffer,
		     size_t at, size_t count);

/*
 * Exchange bytes with a rank, which calls it too: at most as many as bench_open
 * reserved. Returns the seconds that took. The second overwrites both buffers and
 * the pattern, checks what came, and returns how many bytes are wrong.
 */
double bench_exchange(struct bench *bench, int peer, size_t size);
uint64_t bench_check_exchange(struct bench *bench, int peer, size_t size);

/*
 * Collective: measure the sizes that the options name, print them, and set
 * *wrong if a result was wrong.
 */
int bench_run(struct world *world, const struct options *options, bool *wrong,
	      struct ddp_error *error);

/*
 * Print "# ddp-bench 0.1.0, backend mpi (Open MPI v4.1.4), 4 ranks on 2 nodes"
 * and the ranks: every table begins so.
 */
void bench_print_world(const struct world *world);

/*
 * Collective: measure every pair of nodes, and print; *bad if something is slow
 * or was wrong.
 */
int pairs_run(struct world *world, const struct options *options, bool *bad,
	      struct ddp_error *error);

#endif
