/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks send, and what must come of it: whole numbers so small that every
 * order of folding them is exact in their type. Element i of rank r has a value
 * that follows from r, i modulo a prime and a seed; a prime, so that parts that
 * were swapped show. Pure.
 */
#ifndef DDP_BENCH_PATTERN_H
#define DDP_BENCH_PATTERN_H

#include <stdint.h>

#include "shape.h"

#define PATTERN_PERIOD 4093

/* The elements from 0 to twice the period. */
struct pattern {
	size_t width;
	unsigned char data[2 * PATTERN_PERIOD * 8];
};

/*
 * The fold by redop of what the ranks from first to last send, in a world of
 * so many ranks; of one rank: what it sends. No element is 0.
 */
void pattern_make(struct pattern *pattern, enum type type, enum redop redop,
		  int first, int last, int ranks, uint64_t seed);

/* The elements from at to at + count, to data. */
void pattern_write(const struct pattern *pattern, size_t at, size_t count,
		   void *data);

/* How many of those in data are others. */
size_t pattern_wrong(const struct pattern *pattern, size_t at, size_t count,
		     const void *data);

#endif
