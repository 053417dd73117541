/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_BENCH_BENCH_H
#define DDP_BENCH_BENCH_H

#include "bench_options.h"
#include "pattern.h"
#include "world.h"

/* The device's memory and how to get at it through a part of the host's. */
struct bench {
	struct world *world;
	const struct options *options;
	unsigned char *memory;		/* of the device; begins with send */
	unsigned char *send, *receive;
	unsigned char *stage;		/* of the host */
	struct pattern pattern;
	uint64_t seed;			/* of the values: anew for each call */
};

/*
 * Collective: prepare the world, with a send and a receive buffer of so many
 * bytes. Fails on all ranks or on none; bench_close is needed only after
 * success.
 */
int bench_open(struct bench *bench, struct world *world,
	       const struct options *options, size_t send, size_t receive,
	       struct ddp_error *error);
void bench_close(struct bench *bench);

/* Elements of bench->pattern, or zeros, to a buffer of the device. */
void bench_fill(struct bench *bench, unsigned char *buffer, size_t count);
void bench_clear(struct bench *bench, unsigned char *buffer, size_t size);

/* How many elements there are others than bench->pattern's from at on. */
uint64_t bench_wrong(struct bench *bench, const unsigned char *buffer,
		     size_t at, size_t count);

/*
 * Collective: measure the sizes that the options name, print them, and set
 * *wrong if a result was wrong.
 */
int bench_run(struct world *world, const struct options *options, bool *wrong,
	      struct ddp_error *error);

#endif
