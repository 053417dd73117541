/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes what ranks send, and what must come of it: whole numbers that are so
 * small that their sum or product is exact in any order. The value of element i
 * of rank r follows from r, a seed and i modulo a prime: a prime, so that parts
 * in the wrong order are seen. Pure.
 */
#ifndef DDP_BENCH_PATTERN_H
#define DDP_BENCH_PATTERN_H

#include <stdint.h>

#include "shape.h"

enum { PATTERN_PERIOD = 4093 };

/* Two periods of elements, from element 0 on. */
struct pattern {
	size_t width;
	unsigned char data[2 * PATTERN_PERIOD * 8];
};

/*
 * Set pattern to what redop makes of what the ranks from first to last send, in
 * a world of ranks ranks; of one rank, to what it sends. No element is 0.
 */
void pattern_make(struct pattern *pattern, enum type type, enum redop redop,
		  int first, int last, int ranks, uint64_t seed);

/* Write count elements, from element at on. */
void pattern_write(const struct pattern *pattern, size_t at, size_t count,
		   void *data);

/* Returns how many of count elements in data differ from those from at on. */
size_t pattern_wrong(const struct pattern *pattern, size_t at, size_t count,
		     const void *data);

#endif
