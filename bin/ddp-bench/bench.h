/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main header of ddp-bench. main.c meets the ranks and chooses one of three
 * measurements: collectives (bench.c), pairs of nodes (pairs.c) or the time
 * until ranks can communicate (bootstrap.c). What moves the data is a table of
 * functions (backend.h, of which mpi.c and nccl.c are two); pattern.c makes
 * data whose result is known. Start with main.c, then backend.h.
 */
#ifndef DDP_BENCH_BENCH_H
#define DDP_BENCH_BENCH_H

#include "bench_options.h"
#include "bench_world.h"
#include "pattern.h"

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
 * Collective: measure the sizes that the options name, print them, and set
 * *wrong if a result was wrong.
 */
int bench_run(struct world *world, const struct options *options, bool *wrong,
	      struct ddp_error *error);

#endif
